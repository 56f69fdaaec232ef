"""The choices that instructions take."""

import enum

engine = enum.Enum("engine", "tensor vector scalar gpsimd dma sync unknown")
dge_mode = enum.IntEnum("dge_mode", "unknown swdge hwdge none", start=0)  # IntEnum: kernels write numbers, too
oob_mode = enum.Enum("oob_mode", "error skip")
reduce_cmd = enum.Enum("reduce_cmd", "idle reset reduce reset_reduce load_reduce", start=0)
dma_engine = enum.Enum("dma_engine", "dma gpsimd_dma")
matmul_perf_mode = enum.Enum("matmul_perf_mode", "none double_row")
reduce_cmd = enum.IntEnum("reduce_cmd", "idle reset reduce reset_reduce load_reduce", start=0)
nc_version = enum.IntEnum("nc_version", "gen2 gen3 gen4", start=2)
