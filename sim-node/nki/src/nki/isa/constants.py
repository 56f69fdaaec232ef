"""The choices that instructions take."""

import enum

engine = enum.Enum("engine", "tensor vector scalar gpsimd dma sync unknown")
dge_mode = enum.IntEnum("dge_mode", "unknown swdge hwdge none", start=0)  # IntEnum: kernels write numbers, too
oob_mode = enum.Enum("oob_mode", "error skip")
matmul_perf_mode = enum.Enum("matmul_perf_mode", "none double_row")
nc_version = enum.IntEnum("nc_version", "gen2 gen3 gen4", start=2)
