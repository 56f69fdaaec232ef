"""The older namespace of AWS's kernels, neuronxcc.nki, on the package nki."""
