#!/usr/bin/env python3
"""Runs AWS's own kernels, unchanged, with trn-run: numbers beside numpy's, times beside the limits of AWS's tests.

    NKI_SAMPLES=…/nki-samples NKI_LIBRARY=…/nki-library PATH=build/release/bin:$PATH tests/integration/nki_aws_test.py

The variables name checkouts of aws-neuron/nki-samples and aws-neuron/nki-library; tests of a missing checkout are skipped.
As nki_test.py: trn-run must reach a core; status 77 (skipped) without one, and without any checkout. tests/nki/public.py runs
these tests, too, when it is given such a checkout.
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import unittest

import nki_ground
from nki_ground import AwsLibrary, EPSILON, as_bf16

import nki
import nki.isa as nisa
import nki.language as nl
import numpy

SAMPLES = "src/nki_samples/tutorials/matrix_multiplication/matrix_multiplication_nki_kernels.py"
BF16 = 2.0**-8  # the largest error of rounding, relative


def tensors(*shapes):
    """Arrays of float32 whose numbers bf16 has, too."""
    random = numpy.random.default_rng(3)
    return [as_bf16(random.standard_normal(shape, dtype=numpy.float32)) for shape in shapes]


def brain(array):
    return nki.tensor(array, nl.bfloat16)


def on(kernel, cores):
    """The kernel on one core or two; AWS's are with nki.jit and without."""
    return nki.simulate(kernel)[cores]


def softmax(scores):
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def causal(scores):
    return numpy.where(numpy.tril(numpy.ones(scores.shape[-2:], bool)), scores, -numpy.inf)


def normed(x, gamma=1.0):
    """RMSNorm, in float64."""
    return x / numpy.sqrt(numpy.square(x, dtype=numpy.float64).mean(-1, keepdims=True) + 1e-6) * gamma


class Samples(unittest.TestCase):
    """Products of matrices."""

    @classmethod
    def setUpClass(cls):
        folder = os.environ.get("NKI_SAMPLES", "")
        if not pathlib.Path(folder, SAMPLES).exists():
            raise unittest.SkipTest("NKI_SAMPLES names no checkout of aws-neuron/nki-samples")
        spec = importlib.util.spec_from_file_location("samples", pathlib.Path(folder, SAMPLES))
        cls.kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.kernels)

    def assert_product(self, product, a, b, rounding=0.0):
        a, b = a.astype(numpy.float64), b.astype(numpy.float64)
        sums = numpy.abs(a).T @ numpy.abs(b)
        self.assertEqual(product.shape, sums.shape)
        self.assertLess((numpy.abs(product - a.T @ b) / sums).max(), a.shape[0] * EPSILON + rounding)

    def test_the_products_are_those_of_numpy(self):
        a, b = tensors((128, 64), (128, 512))
        self.assert_product(self.kernels.nki_matmul_basic_(a, b), a, b)
        a, b = tensors((256, 512), (256, 1024))
        for kernel in (self.kernels.nki_matmul_tiled_, self.kernels.nki_matmul_hoist_load_,
                       self.kernels.nki_matmul_block_free_dimension_):
            self.assert_product(kernel(a, b), a, b)
            self.assert_product(kernel(brain(a), brain(b)), a, b, BF16)

    def test_the_blocked_product_is_that_of_numpy(self):
        a, b = tensors((256, 512), (256, 1024))
        self.assert_product(self.kernels.nki_matmul_fully_optimized_(a, b, 4, 2, 2), a, b)


class Library(AwsLibrary):
    """Finds the modules, and compares."""

    def setUp(self):
        super().setUp()
        kept = contextlib.redirect_stdout(io.StringIO())  # some kernels print what they place where
        kept.__enter__()
        self.addCleanup(kept.__exit__, None, None, None)

    def assert_near(self, results, expected, error):
        """`error` is relative to the spread of what is expected: the kernels compute in bf16 and round in many places."""
        for result, wanted in zip(results, expected, strict=True):
            self.assertEqual(result.shape, wanted.shape)
            self.assertLess(numpy.sqrt(numpy.square(result - wanted).mean()), error * wanted.std())
            self.assertLess(numpy.abs(result - wanted).max(), 20 * error * wanted.std())


class Embeddings(Library):
    @staticmethod
    def rotated(x, cosine, sine, contiguous):
        """RoPE of [head, batch, heads, sequence], whose pairs are halves of a head or neighbours."""
        half = x.shape[0] // 2
        pairs = (slice(0, half), slice(half, None)) if contiguous else (slice(0, None, 2), slice(1, None, 2))
        cosine, sine, result = cosine[:, :, None], sine[:, :, None], numpy.empty_like(x)
        real, imaginary = (x[part] for part in pairs)
        result[pairs[0]], result[pairs[1]] = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        return result

    def test_rotary_embeddings_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.embeddings.rope import RoPE
        x, cosine, sine = tensors((128, 2, 4, 16), (64, 2, 16), (64, 2, 16))
        for contiguous in (True, False):
            numpy.testing.assert_allclose(on(RoPE, 1)(x, cosine, sine, contiguous_layout=contiguous),
                                          self.rotated(x, cosine, sine, contiguous), rtol=1e-6, atol=1e-6)

    def test_rotary_embeddings_of_hugging_face_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.embeddings.rope_hf import rope_hf
        queries, keys, cosine, sine = tensors((2, 4, 256, 128), (2, 2, 256, 128), (2, 256, 128), (2, 256, 128))
        expected = [x * cosine[:, None] + numpy.concatenate([-x[..., 64:], x[..., :64]], -1) * sine[:, None]
                    for x in (queries, keys)]
        for cores in (1, 2):
            results = on(rope_hf, cores)(queries, keys, numpy.zeros_like(queries), numpy.zeros_like(keys), cosine, sine)
            numpy.testing.assert_allclose(results[0], expected[0], rtol=1e-6, atol=1e-6)
            numpy.testing.assert_allclose(results[1], expected[1], rtol=1e-6, atol=1e-6)


class Attention(Library):
    def test_attention_of_a_prompt_is_that_of_numpy(self):
        from nkilib_src.nkilib.core.attention.attention_cte import attention_cte
        for queries, heads, kept, width, masked in ((256, 1, 256, 128, True), (384, 2, 512, 64, False), (200, 1, 200, 64, True)):
            q, k, v = tensors((heads, queries, width), (1, kept, width), (1, kept, width))
            scores = numpy.einsum("hqd,kd->hqk", q, k[0], dtype=numpy.float64) * width**-0.5
            expected = softmax(causal(scores) if masked else scores) @ v[0]
            for kind in (brain, nki.tensor):
                result = on(attention_cte, 1)(kind(q), kind(k), kind(v), scale=width**-0.5, causal_mask=masked, tp_k=True)
                self.assert_near([result], [expected], BF16)
        turned = on(attention_cte, 2)(*(numpy.swapaxes(x, 1, 2) for x in (q, k)), v, scale=width**-0.5, tp_q=False, tp_out=True)
        self.assert_near([turned], [numpy.swapaxes(expected, 1, 2)], BF16)

    def test_attention_with_a_prefix_a_sink_and_packed_sequences_is_that_of_numpy(self):
        from nkilib_src.nkilib.core.attention.attention_cte import attention_cte
        size, width, used, first, sink = 256, 64, 300, 100, 0.7
        q, k, v, keys, values = tensors(*[(size, width)] * 3, *[(512, width)] * 2)
        q = q * 0.125
        before, row = causal(numpy.zeros((size, size))), numpy.arange(size)
        apart = numpy.where((row[:, None] < first) == (row < first), before, -numpy.inf)
        bounds = [numpy.where(row < first, *ends).astype(numpy.float32)[:, None] for ends in ((0, first), (first, size))]
        for named, more_keys, more_values, mask in (
                ({"k_prior": keys[None], "v_prior": values[None], "prior_used_len": numpy.array([used], numpy.int32)},
                 keys[:used], values[:used], numpy.hstack([numpy.zeros((size, used)), before])),
                ({"sink": numpy.full((1, 1), sink, numpy.float32)}, numpy.zeros((1, width)), numpy.zeros((1, width)),
                 numpy.hstack([numpy.full((size, 1), sink), before])),
                (dict(zip(("bound_min", "bound_max"), bounds)), keys[:0], values[:0], apart)):
            scores = q.astype(numpy.float64) @ numpy.vstack([more_keys, k]).T + mask
            expected = softmax(scores) @ numpy.vstack([more_values, v])
            for cores in (1, 2):
                with self.subTest(list(named), cores=cores):
                    result = on(attention_cte, cores)(q[None], k[None], v[None], tp_k=True, **named)
                    self.assert_near([result], [expected[None]], BF16)

    def test_gradients_of_attention_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.attention.attention_bwd import attention_bwd
        size, width = 512, 128
        q, k, v, gradient = (x.astype(numpy.float64) for x in tensors(*[(width, size)] * 4))
        scores = causal(q.T @ k * width**-0.5)
        logarithms = scores.max(-1) + numpy.log(numpy.exp(scores - scores.max(-1, keepdims=True)).sum(-1))
        parts = softmax(scores)
        output = v @ parts.T
        back = parts * (gradient.T @ v - (gradient * output).sum(0)[:, None]) * width**-0.5
        expected = (k @ back.T, q @ back, gradient @ parts)
        results = on(attention_bwd, 1)(*(brain(x.astype(numpy.float32)[None, None]) for x in (q, k, v, output, gradient)),
                                       logarithms.reshape(1, 1, -1, 128).swapaxes(2, 3).astype(numpy.float32),
                                       use_causal_mask=True, mixed_precision=True)
        self.assert_near(results, [one[None, None] for one in expected], 2 * BF16)

    def test_attention_of_a_token_to_a_cache_is_that_of_numpy(self):
        from nkilib_src.nkilib.core.attention.attention_tkg import attention_tkg
        from nkilib_src.nkilib.core.attention.attention_tkg_utils import AttnTKGConfig
        from nkilib_src.nkilib.core.utils.allocator import SbufManager
        from nkilib_src.nkilib.core.utils.logging import get_logger
        batch, heads, room, used, width = 2, 4, 512, 300, 128

        def kernel(q, k, v, keys, values, mask):
            c = nl.ndarray((batch, heads, width, 1), q.dtype, buffer=nl.shared_hbm)
            place = SbufManager(0, 200 << 10, get_logger("attention"))
            place.open_scope()
            tiles = [place.alloc_stack(x.shape, x.dtype) for x in (q, k)]
            for tile, x in zip(tiles, (q, k)):
                nisa.dma_copy(tile, x)
            config = AttnTKGConfig(bs=batch, q_head=heads, s_active=1, curr_sprior=room, full_sprior=room, d_head=width,
                                   strided_mm1=False, qk_in_sb=True)
            attention_tkg(*tiles, v, keys, values, mask, c, config, place)
            return c

        q, k, v, keys, values = tensors((width, batch * heads), (width, batch), (batch, 1, 1, width),
                                        (batch, 1, width, room), (batch, 1, room, width))
        q *= 0.25
        mask = numpy.zeros((room, batch, heads, 1), numpy.uint8)
        mask[:used] = mask[-1] = 1  # the last is the token itself
        all_keys = numpy.concatenate([keys[:, 0, :, :used], k.T[:, :, None]], 2)
        all_values = numpy.concatenate([values[:, 0, :used], v[:, 0]], 1)
        scores = numpy.einsum("dbh,bdk->bhk", q.reshape(width, batch, heads), all_keys, dtype=numpy.float64)
        expected = (softmax(scores) @ all_values)[..., None]
        for cores in (1, 2):
            self.assert_near([on(kernel, cores)(*map(brain, (q, k, v, keys, values)), mask)], [expected], BF16)


class Layers(Library):
    def test_projections_with_norms_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.qkv.qkv_cte import qkv_cte
        from nkilib_src.nkilib.core.utils.common_types import NormType
        x, weights, gamma, beta = tensors((1, 256, 512), (512, 512), (1, 512), (1, 512))
        centred = x - x.mean(-1, keepdims=True)
        for norm, named, expected in ((NormType.NO_NORM, {}, x), (NormType.RMS_NORM_SKIP_GAMMA, {}, normed(x)),
                                      (NormType.RMS_NORM, {"gamma_norm_weights": brain(gamma)}, normed(x, gamma)),
                                      (NormType.LAYER_NORM, {"gamma_norm_weights": brain(gamma), "layer_norm_bias": brain(beta)},
                                       normed(centred, gamma) + beta)):
            for rows in (256, 200):  # 128 does not divide 200: the kernel copies what nothing has written
                with self.subTest(norm, rows=rows):
                    result = on(qkv_cte, 1)(brain(x[:, :rows]), brain(weights), fused_norm_type=norm, **named)
                    self.assert_near([result], [expected[:, :rows] @ weights], BF16)

    def test_norms_of_a_token_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.subkernels.layernorm_tkg import layernorm_tkg
        from nkilib_src.nkilib.core.subkernels.rmsnorm_tkg import rmsnorm_tkg

        def kernel(function, x, gamma, **named):
            c = nl.ndarray((128, x.shape[0] * x.shape[1], x.shape[2] // 128), x.dtype, buffer=nl.shared_hbm)
            function(x, gamma, c, **named)
            return c

        x, gamma, beta = tensors((2, 4, 1024), (1, 1024), (1, 1024))
        for function, named, expected in ((rmsnorm_tkg, {}, normed(x, gamma)),
                                          (layernorm_tkg, {"beta": beta}, normed(x - x.mean(-1, keepdims=True), gamma) + beta)):
            result = nki.jit(kernel)(function, x, gamma, **named)
            numpy.testing.assert_allclose(result, expected.reshape(8, 128, 8).swapaxes(0, 1), rtol=1e-4, atol=1e-5)

    def test_perceptrons_of_a_prompt_and_of_a_token_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.mlp.mlp_cte.mlp_cte import mlp_cte
        from nkilib_src.nkilib.core.mlp.mlp_parameters import MLPParameters
        from nkilib_src.nkilib.core.mlp.mlp_tkg.mlp_tkg import mlp_tkg
        from nkilib_src.nkilib.core.utils.allocator import SbufManager
        from nkilib_src.nkilib.core.utils.logging import get_logger

        def kernel(x, *weights):
            c = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            sizes = MLPParameters(x, *weights, output_dtype=x.dtype)
            if x.shape[1] > 1:
                mlp_cte(sizes, c, None)
            else:
                mlp_tkg(sizes, c, None, sbm=SbufManager(0, 200 << 10, get_logger("mlp")))
            return c

        for shape in ((1, 256, 512), (4, 1, 1024)):
            x, gate, up, down = tensors(shape, (shape[2], 512), (shape[2], 512), (512, shape[2]))
            gate, up = gate / 32, up / 32
            gates = x.astype(numpy.float64) @ gate
            expected = (gates / (1 + numpy.exp(-gates)) * (x @ up)) @ down
            for cores in (1, 2):
                self.assert_near([on(kernel, cores)(*map(brain, (x, gate, up, down)))], [expected], BF16)

    def test_output_projections_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.output_projection.output_projection_cte.output_projection_cte import output_projection_cte
        from nkilib_src.nkilib.core.output_projection.output_projection_tkg import output_projection_tkg
        attention, weight, bias = tensors((2, 3, 64, 256), (192, 768), (1, 768))
        expected = numpy.einsum("bnds,ndh->bsh", attention, weight.reshape(3, 64, 768), dtype=numpy.float64) + bias
        numpy.testing.assert_allclose(output_projection_cte(attention, weight, bias), expected, rtol=1e-4, atol=1e-4)
        attention, weight, bias = tensors((64, 4, 4, 2), (256, 1024), (1, 1024))
        expected = numpy.einsum("dbns,ndh->bsh", attention, weight.reshape(4, 64, 1024), dtype=numpy.float64) + bias
        for cores in (1, 2):
            numpy.testing.assert_allclose(on(output_projection_tkg, cores)(attention, weight, bias), expected.reshape(8, 1024),
                                          rtol=1e-4, atol=1e-4)

    def test_convolutions_are_those_of_numpy(self):
        from nkilib_src.nkilib.experimental.conv.conv1d import conv1d
        x, filters = tensors((2, 16, 50), (3, 16, 32))
        for stride, dilation, padding in ((1, 1, (0, 0)), (2, 1, (1, 2)), (1, 2, (2, 2))):
            padded = numpy.pad(x.astype(numpy.float64), ((0, 0), (0, 0), padding))
            last = padded.shape[2] - 2 * dilation
            expected = sum(numpy.einsum("bcl,co->bol", padded[:, :, at * dilation:last + at * dilation:stride], filters[at])
                           for at in range(3))
            result = conv1d(x, filters, stride=stride, dilation=dilation, padding=padding)
            numpy.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


class Choices(Library):
    def test_sums_and_largest_elements_are_those_of_numpy(self):
        from nkilib_src.nkilib.core.cumsum.cumsum import cumsum
        from nkilib_src.nkilib.core.max.cascaded_max import cascaded_max
        (x,) = tensors((70, 3000))
        numpy.testing.assert_allclose(cumsum(x), numpy.cumsum(x, -1, dtype=numpy.float64), rtol=1e-4, atol=1e-3)
        for rows, cores in ((1, 1), (4, 2)):
            largest, where = on(cascaded_max, cores)(x[:rows])
            numpy.testing.assert_array_equal(largest[:, 0], x[:rows].max(-1))
            numpy.testing.assert_array_equal(numpy.take_along_axis(x[:rows], where.astype(int), -1), largest)

    def test_gradients_of_cross_entropy_are_those_of_numpy(self):
        from nkilib_src.nkilib.experimental.loss.cross_entropy import cross_entropy_backward
        (x,) = tensors((128, 4096))
        targets = numpy.arange(128, dtype=numpy.int32) * 31
        parts = softmax(x.astype(numpy.float64))
        logarithms = (x[:, 0] - numpy.log(parts[:, 0])).astype(numpy.float32)
        expected = (parts - (numpy.arange(4096) == targets[:, None])) / 128
        for cores in (1, 2):
            result = on(cross_entropy_backward, cores)(x, targets, logarithms, chunk_size=2048, dtype=nl.float32, inplace=False)
            numpy.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-8)


class Times(Library):
    """AWS's tests state limits and times; docs/tasks/kernels.md has the times here, and why some differ."""

    def test_attention_is_not_slower_than_awss_limit(self):
        from nkilib_src.nkilib.core.attention.attention_cte import attention_cte
        for size, dtype, limit in ((4096, nl.bfloat16, 380), (4096, nl.float32, 410), (5120, nl.bfloat16, 586)):
            turned, rows = nki.shape((1, 128, size), dtype), nki.shape((1, size, 128), dtype)
            run = on(attention_cte, 1).run(turned, turned, rows, causal_mask=False, tp_q=False, data=False)
            self.assertLess(run.time_us, limit)

    def test_projections_are_not_slower_than_awss_limits(self):
        from nkilib_src.nkilib.core.qkv.qkv_cte import qkv_cte
        from nkilib_src.nkilib.core.utils.common_types import NormType
        for rows, hidden, heads, dtype, limit in ((128, 512, 512, nl.float16, 25), (512, 1024, 384, nl.bfloat16, 40),
                                                  (128, 1024, 512, nl.bfloat16, 28), (1024, 8192, 512, nl.bfloat16, 307)):
            run = on(qkv_cte, 1).run(nki.shape((1, rows, hidden), dtype), nki.shape((hidden, heads), dtype),
                                     fused_norm_type=NormType.RMS_NORM_SKIP_GAMMA, data=False)
            self.assertLess(run.time_us, limit)

    def test_attention_takes_what_the_librarys_tests_say(self):
        from nkilib_src.nkilib.core.attention.attention_cte import attention_cte
        for cores, queries, keys, width, dtype, masked, by_rows, measured in (
                (1, 4096, 9216, 64, nl.float32, False, True, 580), (1, 9216, 9216, 64, nl.bfloat16, True, True, 694),
                (2, 8192, 8192, 128, nl.float32, True, False, 363), (2, 8192, 4096, 64, nl.float32, False, True, 313)):
            with self.subTest(cores=cores, queries=queries, keys=keys, width=width):
                q = nki.shape((1, queries, width) if by_rows else (1, width, queries), dtype)
                k, v = nki.shape((1, width, keys), dtype), nki.shape((1, keys, width), dtype)
                run = on(attention_cte, cores).run(q, k, v, causal_mask=masked, tp_q=by_rows, data=False)
                self.assertLess(abs(run.time_us / measured - 1), 0.1)


if __name__ == "__main__":
    nki_ground.main()
