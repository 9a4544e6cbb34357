"""Problems of a machine's devices: driver, CUPTI, and other tools that use them."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

ENTRIES = (
    Entry(
        "profiling-restricted",
        "warning",
        "The driver lets only administrators profile",
        "RmProfilingAdminOnly is 1 and this process has neither CAP_SYS_ADMIN nor CAP_PERFMON. The driver refuses hardware counters "
        "(ERR_NVGPUCTRPERM), and older drivers refuse traces as well: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and a profile without device rows.",
        "As root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf, then reboot. "
        "In a container: run it with --cap-add SYS_ADMIN, as root inside; --privileged is more than needed.",
    ),
    Entry(
        "devices-not-visible",
        "error",
        "The driver is loaded, but its devices are not visible",
        "The container was started without devices: the driver's files are visible, /dev/nvidia0 is not. The framework then trains on the CPU, "
        "and profiles have no device events.",
        "Start the container with --gpus all (Docker), or --nv (Apptainer).",
    ),
    Entry(
        "driver-too-old",
        "error",
        "The driver is older than the framework's CUDA",
        "A framework built for a newer CUDA than the driver supports falls back to the CPU, or fails at its first kernel; CUPTI returns "
        "CUPTI_ERROR_NOT_COMPATIBLE.",
        "Update the driver to {driver} or newer, or install the framework's build for CUDA {cuda}.",
        example={"driver": "580.65", "cuda": "12"},
    ),
    Entry(
        "nvml-missing",
        "warning",
        "NVML cannot be loaded",
        "libnvidia-ml.so.1 is part of the driver and provides utilisation, power, clocks and temperature. Without it a profile has no telemetry; "
        "usually a container has the compute capability but not utility.",
        "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; on a host, reinstall the driver.",
    ),
    Entry(
        "devices-hidden",
        "warning",
        "CUDA_VISIBLE_DEVICES hides all devices",
        "With an empty value or -1 the framework sees no device and trains on the CPU; the profile has host events only.",
        "unset CUDA_VISIBLE_DEVICES, or set it to the numbers of the devices to use.",
    ),
    Entry(
        "launch-blocking",
        "warning",
        "CUDA_LAUNCH_BLOCKING makes every launch wait",
        "The host waits for each kernel: steps are slower, nothing overlaps, and the profile shows synchronisation that the job does not have "
        "otherwise.",
        "unset CUDA_LAUNCH_BLOCKING before profiling.",
    ),
    Entry(
        "cupti-missing",
        "error",
        "CUPTI is not installed",
        "Without libcupti the profilers of PyTorch, TensorFlow and JAX record the host only: no kernels, no copies. TensorFlow says "
        "`could not load dynamic library 'libcupti.so'`, JAX `CUPTI could not be loaded`.",
        "{python} -m pip install {wheel}, or install the CUDA toolkit and add its extras/CUPTI/lib64 to LD_LIBRARY_PATH.",
        example={"wheel": "nvidia-cuda-cupti-cu12 (nvidia-cuda-cupti for CUDA 13)"},
    ),
    Entry(
        "cupti-unloadable",
        "error",
        "CUPTI cannot be loaded",
        "The library exists, but the dynamic linker rejects it: it was built for another machine, is truncated, or needs a library that is "
        "missing. Profiles then have host events only.",
        "{python} -m pip install --force-reinstall {wheel}",
        example={"wheel": "nvidia-cuda-cupti-cu12 (nvidia-cuda-cupti for CUDA 13)"},
    ),
    Entry(
        "cupti-versions",
        "warning",
        "Several versions of CUPTI are on the path",
        "LD_LIBRARY_PATH comes before the library that the framework was built with. A CUPTI of another CUDA version then returns "
        "CUPTI_ERROR_NOT_INITIALIZED, or no events.",
        "Remove {folders} from LD_LIBRARY_PATH in the shell that starts the job.",
        example={"folders": "the other CUPTI"},
    ),
    Entry(
        "another-profiler",
        "error",
        "Another profiler uses CUPTI",
        "Nsight Systems, Nsight Compute or another tool was injected into this process or started it. A second client gets "
        "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED or CUPTI_ERROR_MAX_LIMIT_REACHED: the profile looks complete, but has no device events.",
        "Use one tool at a time: start the job without {tool}.",
        {"injected": Case(fix="unset {variables}")},
        {"tool": "the other", "variables": "the variables by which it is injected"},
    ),
    Entry(
        "dcgm-running",
        "info",
        "DCGM is monitoring the devices",
        "With profiling metrics on (DCGM_FI_PROF_*), DCGM uses the counters of the device. Traces usually still work; ncu and CUPTI's counters "
        "do not.",
        "Where device events are missing: dcgmi profile --pause while recording, then dcgmi profile --resume.",
    ),
    Entry(
        "profilers-beside",
        "info",
        "Another profiler runs on this machine",
        "Tools that profile a whole device, such as ncu, slow down or block every other process on it.",
        "Wait until it has ended, or record on another device.",
    ),
    Entry(
        "kineto-daemon-absent",
        "warning",
        "PyTorch waits for a daemon that is not running",
        "KINETO_USE_DAEMON makes PyTorch register with dynolog. Without dynolog, `dyno gputrace` says `No processes were matched` and no file ever "
        "appears.",
        "Start dynolog --enable_ipc_monitor on this host, as the same user, before the job; or unset KINETO_USE_DAEMON.",
    ),
    Entry(
        "errors-hidden",
        "info",
        "The frameworks' error messages are switched off",
        "TF_CPP_MIN_LOG_LEVEL=3 hides all CUPTI messages of TensorFlow and JAX, so device events can be missing without any message.",
        "Set TF_CPP_MIN_LOG_LEVEL to 1 or less while profiling.",
    ),
)
