"""What the name of a host event says: a wait, a user's frame, a library's, a compiler's, the making of a batch, …

Rules on names alone. Each distinct name of a trace is judged once.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.native.host.lineage import (  # fmt: skip
    ALLOCATOR,
    CALL,
    COMPILE,
    CONTEXT,
    FRAMEWORK,
    FRAMEWORK_CONTEXT,
    GARBAGE,
    HOST_COLLECTIVE,
    INPUT,
    IO,
    LIBRARY,
    OP,
    OWN,
    PROFILER,
    SILENT,
    USER,
    WAIT_DEVICE,
    WAIT_THREAD,
)

_FRAMEWORKS = (
    "torch|torch_xla|torchvision|torchaudio|torchrec|torchtitan|functorch|fbgemm_gpu|jax|jaxlib|flax|optax|haiku"
    "|equinox|orbax|chex|tensorflow|keras|tf_keras|lightning|lightning_fabric|pytorch_lightning|accelerate"
    "|transformers|deepspeed|apex|xformers|flash_attn|triton|transformer_engine|megatron|fairscale|timm|peft"
    "|bitsandbytes|ignite|composer|horovod|diffusers"
)
# JAX's tracer gives the file without its folder, so that its own files can be told by their names only.
_JAX_FILES = (
    "ad|ad_util|api|api_util|api_boundary|array|array_constructors|array_creation|asarray|basearray|batching|cache_key|"
    "compilation_cache|compiler|config|core|custom_derivatives|deprecations|device_put|dispatch|dtypes|einsum|"
    "ad_checkpoint|fft|indexing|jaxpr_util|lax|lax_numpy|layout|linear_util|literals|mesh|mesh_utils|mlir|named_sharding|"
    "nn|partial_eval|partition_spec|path|pjit|prng|profiler|pxla|reductions|scatter|sharding|sharding_impls|"
    "sharding_specs|slicing|source_info_util|special|stages|traceback_util|tree|tree_util|typing|ufunc_api|"
    "ufuncs|util|weakref_lru_cache|xla|xla_bridge|xla_client|xla_metadata|state|effects|functions"
)
_FRAMEWORK_FRAME = (
    rf"^nn\.Module: |(^|site-packages/|dist-packages/)({_FRAMEWORKS})[/\\]"
    rf"|^\$({_JAX_FILES})\.py:\d+ |^<eval_with_key>|^<string>|^/tmp/torchinductor"
)
_TORCH_BUILTIN = r"^<built-in (method|function) .*(\btorch\b|Tensor|_cuda_|type object at)"
_STANDARD = (
    "abc|ast|asyncio|base64|bdb|codecs|collections|concurrent|configparser|contextlib|copy|copyreg|csv|ctypes|dataclasses|"
    "datetime|decimal|email|encodings|enum|fractions|functools|gc|genericpath|glob|gzip|hashlib|heapq|http|importlib|"
    "inspect|io|ipaddress|json|linecache|locale|logging|lzma|multiprocessing|numbers|ntpath|operator|os|pathlib|"
    "pickle|platform|posixpath|queue|random|re|runpy|selectors|shutil|signal|socket|socketserver|ssl|statistics|string|struct|"
    "subprocess|tempfile|textwrap|threading|timeit|token|tokenize|traceback|types|typing|unittest|urllib|uuid|"
    "warnings|weakref|xml|zipfile|_collections_abc|_weakrefset|sre_compile|sre_parse|_bootlocale"
)
STANDARD_FRAME = rf"^<|(^|lib/python3\.\d+/)({_STANDARD})(/[\w/]*)?(\.py)?\(\d+\)|^\$({_STANDARD})\.py:\d+ "
# A frame that names a file and a line: `train.py(12): step`, or JAX's `$train.py:12 step`.
PLACE = r"\(\d+\): |^\$\S+\.py:\d+ "
_LIBRARIES = (
    "numpy|scipy|pandas|PIL|cv2|sklearn|skimage|matplotlib|h5py|zarr|pyarrow|datasets|tokenizers|sentencepiece|"
    "tqdm|rich|wandb|tensorboard|tensorboardX|mlflow|yaml|omegaconf|hydra|gym|gymnasium|requests|urllib3|fsspec|s3fs|boto3|"
    "albumentations|imageio|librosa|soundfile|einops|packaging|typing_extensions|attr|pydantic|msgpack|zmq|ray"
)
_LIBRARY_FRAME = (
    rf"^<(built-in|method|slot wrapper|frozen|wrapper)|^\$[\w.<>]+ |(^|site-packages/|dist-packages/)({_LIBRARIES})[/\\]"
    rf"|(^|lib/python3\.\d+/)({_STANDARD})(/[\w/]*)?(\.py)?\(\d+\)|^\$({_STANDARD})\.py:\d+ |site-packages/|dist-packages/"
    r"|^\$(numeric|fromnumeric|_methods|arrayprint|function_base|shape_base|multiarray|stride_tricks|__init__)\.py:\d+ "
)

WAITS_FOR_DEVICE = (
    r"(?i)(Stream|Device|Event|Context|Ctx)Synchronize|^(cuda|hip)Memcpy(_ptds|WithStream|DtoH|HtoD)?$|^cuMemcpy(DtoH|HtoD)(_v2)?$"
    r"|BlockHostUntil(Done|Ready)|block_until_ready|AwaitReady|ToLiteral|^np\.asarray\(jax\.Array\)"
    r"|^\$array\.py:\d+ (__float__|__int__|__bool__|__index__|__array__|item|tolist|_value)$"
    r"|TransferLiteralFromDevice|torch/cuda/(__init__|streams)\.py\(\d+\): synchronize|_cuda_synchronize"
)
_WAITS_FOR_THREAD = (
    r"run_backward|^<(built-in )?method '?(acquire|wait|join|poll|select|recv|recv_bytes)'? of|^\$(_thread|select|_queue) "
    r"|^(threading|queue|selectors|_base|concurrent/futures/\w+|multiprocessing/\w+)\.py\(\d+\): (wait|acquire|join|get|result|select|poll|_poll|recv)"
    r"|^\$(threading|queue|selectors|_base)\.py:\d+ (wait|acquire|join|get|result|select|poll)"
    r"|KernelAndDeviceFunc::Run|WaitForNotification|^Wait\b|^SessionRun|DirectSession::Run|ThunkExecutor::.*[Ww]ait"
    r"|ExecuteHelperOnSingleDevice|^TFE_Py_Execute|^EagerExecute$|^EagerKernelExecute$"
)
FRAMEWORK_ANNOTATION = (
    r"^(Optimizer\.|enumerate\(Data|DistributedDataParallel|FullyShardedDataParallel|FSDP|DDP|Torch-Compiled|Pregraph|"
    r"PyTorch Profiler|TorchDynamo|CompiledF|## Call CompiledFx|ProfilerStep|nccl:|gloo:|c10d|autograd::|aten::|torch\b)"
)

# Ops that look at tensors, wait for them or make room for them, and compute nothing.
NO_COMPUTATION = (
    r"^autograd::|::(item|_local_scalar_dense|empty\w*|resize_?|set_|pin_memory|_pin_memory|is_nonzero|c10d\w*|unflatten\w*|view\w*"
    r"|slice|narrow|select|split\w*|chunk|unbind|as_strided|expand|t|transpose|permute|detach|alias|unsqueeze|squeeze)$"
)

# A compiled program that runs on the host's own threads, and an op that is run eagerly.
_EXECUTES = r"^ThunkExecutor::Execute|^CpuExecutable::Execute|^Eager(Local|Remote)Execute: "
# Threads on which such programs and graphs run: work on them is compute, whatever the main thread does meanwhile.
COMPUTE_THREAD = r"(?i)^(tf_XLA|tf_Compute|tf_numa|XLA|tfrt|Eigen)"
# Threads of a runtime that wait for copies: a thread that needs the result waits for it by itself.
COPYING_THREAD = r"^pjrt_async_work_runner"
# Threads that only make input, whatever the events on them are named.
INPUT_THREAD = r"(?i)^tf_data|dataloader|pin_memory|prefetch"
_MAKES = "get|next|make|fetch|prepare|prep|read|create|sample|build|generate|gen|draw|collate|prefetch|produce|wait.?for|load"
_THINGS = "(mini_?)?batch(es)?|data|dataset|inputs?|examples?|samples?|images?|tokens?|features"
INPUT_WORDS = (
    rf"(?i)(^|[^a-z])(({_MAKES})[ _-]?((a|the|next|train|random)[ _-]?)?({_THINGS})|data[ _-]?(load|fetch|wait|time|prep|gen|iter|stream)\w*"
    r"|(mini)?batch[ _-]?(load|fetch|prep|gen|iter)\w*|input[ _-]?(pipeline|fn|wait)|(collate|preprocess|augment)\w*|__next__"
    r"|iter(ate)?_?(mini_?)?batches|infinite_?(data\w*|loader))([^a-z]|$)|^(data|dataset|inputs?|(mini_?)?batches|(data_?)?loader|sampler)$"
)
# Frames that read an input and prepare it for a model, in libraries for it or by their name. A text encoder is a model.
PREPARES_INPUT = (
    r"(^|/)(torchvision/(transforms|io|datasets)|torchaudio|PIL|cv2|albumentations|imageio|skimage|librosa|soundfile|tokenizers|sentencepiece)/"
    r"|(^|/)transformers/\S*(tokenization|image_processing|feature_extraction)_"
    r"|(?i:\(\d+\): _*(load|read|open|decode|pre_?process|prepare|transform|tokeni[sz]e|resize|crop|pad|normali[sz]e|to_?tensor)(_?(an?|the|next))?(_?(images?|pictures?|pics?|pixels?|files?|texts?|audio|clips?|waves?|frames?|inputs?|samples?|examples?|data|rgb|jpe?g|png|wav))?$)"
)
# Layers of a network with weights: products, attention and norms.
LAYERS = r"^aten::(linear|addmm|scaled_dot_product_\w+|(layer|batch|group|rms)_norm|lstm|gru)$"
# A thread of XLA that lays a host array out for the device, while the loop has gone on: the host's part of a copy.
STAGES_COPY = r"^(H2D Dispatch|Transpose::Execute|LinearizeHostBuffer)"
_SAVES = r"(?i)(^|[^a-z])((save|write|load|restore|dump)_?(the_)?(ckpt|checkpoints?|model|state\w*|weights|snapshot)|checkpoint_?(save|write|io)|checkpointing)([^a-z]|$)|^checkpoint$"
_FUNCTION = r"(?:^\$\S+ |\(\d+\): )([\w<>]+)$"

_COMPILES = (
    r"\(dynamo_timed\)$|^dynamo$|^torch/_dynamo/(convert_frame|symbolic_convert|output_graph|bytecode_\w+)\.py"
    r"|^torch/_inductor/\S+\.py\(\d+\): \w*(compile|codegen|lower|autotune|benchmark)\w*$|^torch/_functorch/\S+\.py\(\d+\): \w*compile\w*"
    r"|^triton/(compiler/|runtime/(build|autotuner\.py\(\d+\): (_bench|benchmark)|jit\.py\(\d+\): (_do_compile|compile)))|^torch/utils/cpp_extension"
    r"|PjRt\w*::Compile|CompileAndLoad|XlaCompile|backend_compile|RunHloPasses|RunBackend|compile_or_get_cached|Autotun|CompileToBackend"
    r"|^\$(pjit|api|core|mlir|partial_eval|pxla|stages|compiler|linear_util)\.py:\d+ \w*(trace_to_jaxpr|create_pjit_jaxpr|infer_params|lower_|lowering|_cached_lower|compile)\w*"
    r"|^(cu|hip)(Module|Library)Load|^nvrtcCompile|^Lazy Function Loading|^Runtime Triggered Module Loading|^(cudnn|miopen)Find"
    r"|^tf\.function-graph_building|Grappler|MetaOptimizer|InstantiateMultiDevice|InstantiateFunction|GraphConstructor"
)
# What torch.compile does, recorded as ops.
_COMPILING_OP = r"^dynamo$|\(dynamo_timed\)$"
# A look into the cache of compiled functions happens at every call; it is dispatch.
_NOT_COMPILING = r"Cache Lookup|^Torch-Compiled Region"
_READS_OR_WRITES = (
    r"(^|/)torch/serialization\.py|^torch/distributed/checkpoint/|^torch/utils/tensorboard/|^(tensorboardX?|wandb|mlflow|safetensors|orbax)/"
    r"|^(SaveV2|RestoreV2|MergeV2Checkpoints|ReadFile|WriteFile)|^<built-in method \w+ of _io\.|^<method '\w+' of '_io\.|^<built-in function (open|fsync)>"
    r"|^\$_?pickle dump$|^\$_?npyio(_impl)?\.py:\d+ (save|_?savez\w*)$"
)
_PROFILES = r"^torch/(profiler/|autograd/profiler\.py)|^\$profiler\.py:\d+ (start_trace|stop_trace|__enter__|__exit__|__init__)"
# Frames of the capture: what they call is the job's, so that only their own time is the profiler's. JAX leaves the folder out.
OWN_FRAME = r"(^|[/\\])stepscope[/\\]capture[/\\]|^\$waits\.py:\d+ wait_for_(jax|tensorflow|devices)$"
_COLLECTS_GARBAGE = (
    r"^(Python )?GC\b|CollectGarbage|^<built-in function collect>|^\$gc collect|(?i)garbage.?collect"
)
_HOST_COLLECTIVE = r"(?i)^(gloo|mpi|ucc)[:_]"
# Memory asked of the driver, or given back to it; what the framework's own cache answers leaves no such call.
_ALLOCATES = (
    r"^(cuda|hip)(ExtMalloc|Malloc|Free|HostAlloc|HostMalloc|HostFree|FreeHost|HostRegister|HostUnregister|MemPoolTrimTo)"
    r"|^(cu|hip)Mem(Alloc|Free|HostAlloc|HostRegister|Create|Release|Map|Unmap|SetAccess|AddressReserve|AddressFree|PoolTrimTo)"
    r"|^(torch/cuda/memory\.py\(\d+\): empty_cache$|<built-in .*_cuda_emptyCache)"
    r"|BFCAllocator::|^(TfAllocator|StreamExecutorAllocator|DeviceMemAllocator|GpuCudaMallocAsyncAllocator)\b"
)
_COMMAND_BUFFER = r"^Command Buffer Full"


def compiler_names(names: pl.Series) -> pl.Series:
    """Those of these names of host events that say that something is compiled."""
    text = names.cast(pl.String)
    found: pl.Series = names.filter(text.str.contains(_COMPILES) & ~text.str.contains(_NOT_COMPILING))
    return found


def rules(device_collectives: bool, has_python: bool = True) -> Iterator[tuple[pl.Expr, int]]:
    """Conditions on kind, role and name (a String) with what they make of an event; the first that holds decides.

    `device_collectives`: collectives run as kernels, so that their host side is dispatch. `has_python`: there are Python frames;
    without them, the patterns that only frames can match would cost more to compile than the events to judge.
    """
    kind, role, name = pl.col("kind"), pl.col("role"), pl.col("name").cast(pl.String)
    python, annotation, is_op = kind == "python", kind == "annotation", kind == "op"
    plain = kind.is_in(["runtime", "span", "module"])
    function = name.str.extract(_FUNCTION)
    framework, library = name.str.contains(_FRAMEWORK_FRAME), name.str.contains(_LIBRARY_FRAME)
    own = python & ~framework & ~library
    hosted = role == "collective"
    yield (
        (role == "step").fill_null(False) | ~(python | annotation | is_op | plain | (kind == "overhead")),
        SILENT,
    )
    yield name.is_null(), SILENT
    yield name.str.contains(_COMMAND_BUFFER), SILENT
    yield (is_op | annotation) & name.str.contains(_NOT_COMPILING), OP
    yield ~is_op & name.str.contains(_COMPILES), COMPILE
    yield is_op & name.str.contains(_COMPILING_OP), COMPILE
    yield kind == "overhead", PROFILER
    yield (role == "input").fill_null(False), INPUT
    yield plain & name.str.contains(STAGES_COPY), OP
    yield (role == "compile").fill_null(False), COMPILE
    yield name.str.contains(_HOST_COLLECTIVE), HOST_COLLECTIVE
    if not device_collectives:
        yield hosted.fill_null(False), HOST_COLLECTIVE
    yield (role == "io").fill_null(False) & ~is_op, IO
    yield ~is_op & name.str.contains(_READS_OR_WRITES), IO
    yield name.str.contains(_COLLECTS_GARBAGE), GARBAGE
    if has_python:
        yield python & name.str.contains(_PROFILES), PROFILER
        yield python & name.str.contains(OWN_FRAME), OWN
    yield (python | plain) & name.str.contains(_ALLOCATES), ALLOCATOR
    yield ~annotation & name.str.contains(WAITS_FOR_DEVICE), WAIT_DEVICE
    yield ~annotation & ~is_op & name.str.contains(_WAITS_FOR_THREAD), WAIT_THREAD
    if has_python:
        yield own & function.str.contains(INPUT_WORDS).fill_null(False), INPUT
        yield own & function.str.contains(_SAVES).fill_null(False), IO
    yield annotation & name.str.contains(INPUT_WORDS), INPUT
    yield annotation & name.str.contains(_SAVES), IO
    yield annotation & name.str.contains(FRAMEWORK_ANNOTATION), FRAMEWORK_CONTEXT
    yield annotation, CONTEXT
    yield is_op | (plain & name.str.contains(_EXECUTES)), OP
    yield plain, CALL
    if has_python:
        yield python & (framework | name.str.contains(_TORCH_BUILTIN)), FRAMEWORK
        yield python & library, LIBRARY
        yield python, USER
