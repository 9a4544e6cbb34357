"""Why the device idled: by the thread that launched, the one it waits for, the wait that emptied the queue, …"""

from __future__ import annotations

import pytest

from stepscope.analysis.host.causes import host_causes
from tests.builders.inline import check, trace_of


def test_dispatch_belongs_to_the_op_that_launched() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  100  ProfilerStep#1    annotation  -
        main          0   70  aten::mm          op          -
        main         60    5  cudaLaunchKernel  runtime     gemm
        stream 7     65   35  gemm              kernel      -
        """,
        "compute=35 dispatch=65 (aten::mm)",
    )


def test_a_full_queue_is_not_the_hosts_fault() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  100  ProfilerStep#1    annotation  -
        main          0    5  aten::mm          op          -
        main          1    3  cudaLaunchKernel  runtime     first
        main          5   40  aten::mm          op          -
        main          6    3  cudaLaunchKernel  runtime     second
        stream 7      4   40  first             kernel      -
        stream 7     60   40  second            kernel      -
        """,
        "compute=80 dispatch=4 (aten::mm) device_gap=16 (second > aten::mm)",
    )


def test_the_thread_that_launched_is_asked_and_not_the_main_one() -> None:
    check(
        """
        track     start  dur  name                              kind        launches
        main          0  100  ProfilerStep#1                    annotation  -
        main          0   90  aten::long                        op          -
        autograd      0   50  MulBackward0                      op          -
        autograd     48    2  cudaLaunchKernel                  runtime     gemm
        stream 7     50   50  gemm                              kernel      -
        """,
        "compute=50 dispatch=50 (MulBackward0)",
    )


def test_while_the_launching_thread_is_silent_the_main_one_is_asked() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  100  ProfilerStep#1    annotation  -
        main          0   40  aten::forward     op          -
        autograd     40   10  MulBackward0      op          -
        autograd     48    2  cudaLaunchKernel  runtime     gemm
        stream 7     50   50  gemm              kernel      -
        """,
        "compute=50 dispatch=50 (aten::forward)",
    )


def test_a_main_thread_that_waits_for_another_is_not_to_blame() -> None:
    backward = "<built-in method run_backward of torch._C._EngineBase object at 0x7f>"
    check(
        f"""
        track     start  dur  name                      kind        launches
        main          0  100  ProfilerStep#1            annotation  -
        main          0  100  train.py(9): step         python      -
        main          0  100  {backward}                python      -
        autograd     40   10  MulBackward0              op          -
        autograd     48    2  cudaLaunchKernel          runtime     gemm
        stream 7     50   50  gemm                      kernel      -
        """,
        "compute=50 dispatch=50 (MulBackward0)",
    )


def test_input_names_what_was_slow_inside() -> None:
    check(
        """
        track     start  dur  name                                    kind        launches
        main          0  100  ProfilerStep#1                          annotation  -
        main          0   80  torch/utils/data/loader.py(7): __next__  python      -
        main          1   78  enumerate(DataLoader)#_Single.__next__  annotation  -
        main          2   76  torch/utils/data/fetch.py(4): fetch     python      -
        main          3   70  data.py(11): decode                     python      -
        main          3   65  <built-in function open>                python      -
        main         80   10  cudaLaunchKernel                        runtime     gemm
        stream 7     90   10  gemm                                    kernel      -
        """,
        "compute=10 input=80 (enumerate(DataLoader)#_Single.__next__ > data.py(11): decode) dispatch=10",
    )


@pytest.mark.parametrize("name", ["make_batch", "load_data", "next batch", "data", "prefetch_batches"])
def test_an_annotation_that_makes_a_batch_is_input(name: str) -> None:
    check(
        f"""
        track     start  dur  name              kind        launches
        main          0  900  ProfilerStep#1    annotation  -
        main          0  800  {name}            annotation  -
        main        800   50  cudaLaunchKernel  runtime     gemm
        stream 7    850   50  gemm              kernel      -
        """,
        f"compute=50 input=800 ({name}) dispatch=50",
    )


def test_a_function_that_trains_on_its_batch_is_no_input() -> None:
    check(
        """
        track     start  dur  name                     kind        launches
        main          0  900  ProfilerStep#1           annotation  -
        main          0  900  t.py(1): fetch_batch     python      -
        main        100   50  Optimizer.step#SGD.step  annotation  -
        main        800   50  cudaLaunchKernel         runtime     gemm
        stream 7    850   50  gemm                     kernel      -
        """,
        "compute=50 python=800 (t.py(1): fetch_batch) dispatch=50",
    )


@pytest.mark.parametrize(("op", "part"), [("aten::linear", "dispatch"), ("aten::stack", "input")])
def test_a_function_that_runs_a_network_is_no_input(op: str, part: str) -> None:
    """As next_token, which is named after what it makes."""
    trace = trace_of(
        f"""
        track     start  dur  name                  kind        launches
        main          0  100  ProfilerStep#1        annotation  -
        main          0   90  gen.py(9): next_token  python      -
        main         40   40  {op}                  op          -
        main         60   10  cudaLaunchKernel      runtime     gemm
        stream 7     90   10  gemm                  kernel      -
        """
    )
    causes = host_causes(trace)["cause"].filter(trace.events["name"].cast(str) == op)
    assert causes.to_list() == [part]


@pytest.mark.parametrize(("others", "part"), [(5, "dispatch"), (50, "input")])
def test_a_function_that_launches_most_work_of_a_compiled_job_is_no_input(others: int, part: str) -> None:
    trace = trace_of(
        f"""
        track     start  dur  name                   kind        launches
        main          0  200  StepTraceContext       annotation  -
        main          0   90  $gen.py:9 next_tokens  python      -
        main         10   70  PjitFunction(decode)   span        -
        main         60   10  cuLaunchKernel         runtime     gemm
        main        100   10  cuLaunchKernel         runtime     add
        stream 7     90   10  gemm                   kernel      -
        stream 7    110  {others}  add               kernel      -
        """,
        framework="jax",
    )
    causes = host_causes(trace)["cause"].filter(trace.events["name"].cast(str) == "PjitFunction(decode)")
    assert causes.to_list() == [part]


@pytest.mark.parametrize(
    ("op", "kind", "part"),
    [(60, "kernel", "dispatch"), (40, "kernel", "input"), (60, "copy", "input")],
)
def test_a_function_that_spends_most_of_its_time_launching_kernels_is_no_input(
    op: int, kind: str, part: str
) -> None:
    trace = trace_of(
        f"""
        track     start  dur   name                       kind        launches
        main          0  200   ProfilerStep#1             annotation  -
        main          0  100   train.py(9): augment_one   python      -
        main         10  {op}  aten::flip                 op          -
        main         20   10   cudaLaunchKernel           runtime     flip
        main        120   10   cudaLaunchKernel           runtime     gemm
        stream 7     30    5   flip                       {kind}      -
        stream 7    130   60   gemm                       kernel      -
        """
    )
    causes = host_causes(trace)["cause"].filter(trace.events["name"].cast(str) == "aten::flip")
    assert causes.to_list() == [part]


def test_framework_frames_are_dispatch_named_by_the_op_they_come_to() -> None:
    check(
        """
        track     start  dur  name                               kind        launches
        main          0  100  ProfilerStep#1                     annotation  -
        main          0   90  train.py(9): step                  python      -
        main         10   80  torch/optim/adam.py(3): step       python      -
        main         60   30  aten::mul_                         op          -
        main         80   10  cudaLaunchKernel                   runtime     mul
        stream 7     90   10  mul                                kernel      -
        """,
        "compute=10 dispatch=90 (aten::mul_ > train.py(9): step)",
    )


def test_a_short_silence_is_dispatch_of_what_follows() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  500  ProfilerStep#1    annotation  -
        main          0  500  phase             annotation  -
        main          0   10  aten::add         op          -
        main        300   50  aten::mm          op          -
        main        340   10  cudaLaunchKernel  runtime     gemm
        stream 7    350  150  gemm              kernel      -
        """,
        "compute=150 dispatch=350 (aten::mm > phase)",
    )


def test_a_long_silence_in_an_annotation_is_the_users() -> None:
    check(
        """
        track     start   dur  name              kind        launches
        main          0  1000  ProfilerStep#1    annotation  -
        main          0   900  evaluate          annotation  -
        main        900    10  cudaLaunchKernel  runtime     gemm
        stream 7    910    90  gemm              kernel      -
        """,
        "compute=90 python=900 (evaluate) dispatch=10 (cudaLaunchKernel)",
    )


def test_a_long_silence_is_unexplained_and_names_what_came_next() -> None:
    check(
        """
        track     start   dur  name              kind        launches
        main          0  1000  ProfilerStep#1    annotation  -
        main        900    10  aten::mm          op          -
        main        900    10  cudaLaunchKernel  runtime     gemm
        stream 7    910    90  gemm              kernel      -
        """,
        "compute=90 dispatch=10 unexplained=900 (aten::mm)",
    )


def test_a_long_silence_is_what_another_thread_does() -> None:
    check(
        """
        track     start   dur  name              kind        launches
        main          0  1000  ProfilerStep#1    annotation  -
        main          0  1000  DistributedDataParallel.forward  annotation  -
        gloo          0   900  gloo:all_reduce   annotation  -
        main        900    10  cudaLaunchKernel  runtime     gemm
        stream 7    910    90  gemm              kernel      -
        """,
        "compute=90 dispatch=10 host_collective=900 (gloo:all_reduce)",
    )


def test_the_host_side_of_a_collective_on_the_device_is_dispatch() -> None:
    check(
        """
        track      start  dur  name              kind        launches
        main           0  100  ProfilerStep#1    annotation  -
        main           0   50  c10d::allreduce_  op          -
        main          40   10  cudaLaunchKernel  runtime     ncclDevKernel
        stream 13     50   50  ncclDevKernel     kernel      -
        """,
        "collective=50 dispatch=50 (c10d::allreduce_)",
    )


@pytest.mark.parametrize(
    ("name", "kind", "part"),
    [
        ("PjRtCApiClient::CompileAndLoad(jit_f)", "span", "compile"),
        ("torch/_inductor/compile_fx.py(3): compile_fx_inner", "python", "compile"),
        ("triton/runtime/autotuner.py(9): _bench", "python", "compile"),
        ("cuModuleLoadData", "runtime", "compile"),
        ("torch/serialization.py(9): save", "python", "io"),
        ("train.py(9): save_checkpoint", "python", "io"),
        ("<built-in method write of _io.BufferedWriter object>", "python", "io"),
        ("$_pickle dump", "python", "io"),
        ("$_npyio_impl.py:504 save", "python", "io"),
        ("torch/profiler/profiler.py(9): step", "python", "profiler"),
        ("<built-in function collect>", "python", "python"),
        ("TorchDynamo Cache Lookup", "op", "dispatch"),
        ("gloo:barrier", "annotation", "host_collective"),
    ],
)
def test_what_names_say(name: str, kind: str, part: str) -> None:
    check(
        f"""
        track     start  dur  name              kind        launches
        main          0  100  ProfilerStep#1    annotation  -
        main          0   90  {name}            {kind}      -
        stream 7     90   10  gemm              kernel      -
        """,
        f"compute=10 {part}=90 ({name})",
    )


def test_work_that_ran_before_the_first_record_is_unrecorded() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  900  ProfilerStep#1    annotation  -
        main          0   50  aten::mm          op          -
        main         40   10  cudaLaunchKernel  runtime     gemm
        stream 7    800  100  gemm              kernel      -
        """,
        "compute=100 dispatch=50 (aten::mm) unrecorded=750 (gemm)",
    )


def test_a_launch_without_a_record_before_the_first_one_is_unrecorded() -> None:
    check(
        """
        track     start  dur  name              kind        launches
        main          0  900  ProfilerStep#1    annotation  -
        main         40   10  cudaLaunchKernel  runtime     -
        main        700  100  aten::mm          op          -
        main        790   10  cudaLaunchKernel  runtime     gemm
        stream 7    800  100  gemm              kernel      -
        """,
        "compute=100 dispatch=50 unrecorded=750 (gemm)",
    )


def test_the_profilers_overhead_has_a_track_of_its_own() -> None:
    check(
        """
        track     start  dur  name                     kind        launches
        main          0  100  ProfilerStep#1           annotation  -
        main          0   90  aten::mm                 op          -
        main         10   80  cudaLaunchKernel         runtime     gemm
        over gpu     20   60  Activity Buffer Request  overhead    -
        stream 7     90   10  gemm                     kernel      -
        """,
        "compute=10 dispatch=30 (aten::mm) profiler=60 (Activity Buffer Request)",
    )


def test_gaps_inside_a_program_without_launches_are_the_devices() -> None:
    check(
        """
        track     start  dur  name            kind
        main          0  100  ProfilerStep#1  annotation
        main          0  100  aten::mm        op
        over gpu     10   80  jit_step        module
        stream 7     10   30  fusion.1        kernel
        stream 7     50   40  fusion.2        kernel
        """,
        "compute=70 dispatch=20 device_gap=10 (fusion.2)",
    )


def test_without_a_device_ops_are_compute() -> None:
    check(
        """
        track  start   dur  name                                    kind
        main       0  2000  ProfilerStep#1                          annotation
        main       0   400  enumerate(DataLoader)#_Single.__next__  annotation
        main     100    50  aten::decode                            op
        main     500   300  aten::conv2d                            op
        main     900   100  Optimizer.step#SGD.step                 annotation
        main     950    20  aten::add_                              op
        """,
        """
        host_compute=320 (aten::conv2d) input=400 (enumerate(DataLoader)#_Single.__next__)
        dispatch=280 unexplained=1000
        """,
        device=None,
    )


def test_without_a_device_the_threads_that_run_programs_come_first() -> None:
    check(
        """
        track           start  dur  name                    kind
        python              0  1000  ProfilerStep#1         annotation
        python              0  1000  $t.py:1 loop           python
        python            100  200  PjitFunction(step)      span
        tf_XLAEigen/1     300  500  dot.3                   op
        tf_data_x/1       750  200  Iterator::Map           span
        """,
        "host_compute=500 (dot.3) python=300 ($t.py:1 loop) dispatch=200 (PjitFunction(step) > $t.py:1 loop)",
        device=None,
    )


def test_without_a_device_a_wait_is_for_the_thread_that_works() -> None:
    check(
        """
        track        start   dur  name                      kind
        python           0  1000  ProfilerStep#1            annotation
        python           0  1000  KernelAndDeviceFunc::Run  span
        tf_data_x/1      0   700  MapAndBatchProduce        span
        """,
        "input=700 (MapAndBatchProduce) dispatch=300 (KernelAndDeviceFunc::Run)",
        device=None,
    )


@pytest.mark.parametrize(
    ("copying", "named"),
    [(990, "hipMemcpyWithStream > aten::copy_"), (400, "gemm")],
)
def test_a_device_that_begins_late_is_named_by_the_call_that_blocks_the_host(
    copying: int, named: str
) -> None:
    """An idle device begins within microseconds: what it waited for was not recorded, but the host shows where."""
    check(
        f"""
        track     start  dur        name                 kind        launches
        main          0  1000       ProfilerStep#1       annotation  -
        main          0  2          hipLaunchKernel      runtime     first
        main          2  3          hipLaunchKernel      runtime     gemm
        stream 7      2  3          first                kernel      -
        main         10  {copying}  aten::copy_          op          -
        main         10  {copying}  hipMemcpyWithStream  runtime     copy
        stream 7    905  50         gemm                 kernel      -
        stream 7    955  45         copy                 copy        -
        """,
        f"compute=53 copy=45 dispatch=2 (hipLaunchKernel) device_gap=900 ({named})",
    )
