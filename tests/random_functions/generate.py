"""Write random differentiable functions as Python source.

The source uses the public functions only, so it also tests tracing, indexing and closures, and a
failure is a script to paste. Nothing of ``effax.testing`` is used: the generator is independent.

A function maps a vector of three elements and a scalar, both float64, to a scalar. Operations are
smooth almost everywhere, and their values bounded, so that finite differences are accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

Shape = tuple[int, ...]

UNARY = (
    "jnp.sin({0})",
    "jnp.cos({0})",
    "jnp.tanh({0})",
    "jnp.arctan({0})",
    "jnp.exp(jnp.tanh({0}))",
    "jnp.log1p({0} ** 2)",
    "jnp.sqrt(1.0 + {0} ** 2)",
    "jnp.cbrt(2.0 + jnp.sin({0}))",
    "jnp.sinh(jnp.tanh({0}))",
    "jnp.expm1(jnp.sin({0}))",
    "jax.nn.sigmoid({0})",
    "jax.nn.softplus({0})",
    "jax.nn.silu({0})",
    "jax.nn.relu({0} + 0.123)",
    "jnp.abs({0} + 0.123)",
    "-{0}",
    "0.7 * {0}",
    "jnp.sin({0}) ** 3",
    "jnp.tanh({0}) ** 2",
    "jax.lax.erf({0})",
    "({0}).astype('float64')",
    "jnp.square(jnp.cos({0}))",
    "jnp.reciprocal(2.0 + jnp.sin({0}))",
    "jax.lax.stop_gradient(1.5) * {0}",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "jnp.tanh({0}) * {1}",
    "jnp.sin({0} * {1})",
    "{0} / (1.5 + jnp.sin({1}))",
    "jnp.maximum({0}, {1})",
    "jnp.minimum({0}, {1})",
    "jnp.arctan2({0}, 2.0 + jnp.cos({1}))",
    "jnp.hypot({0}, 1.0 + jnp.abs({1}))",
    "jnp.logaddexp({0}, {1})",
    "(1.5 + jnp.sin({0})) ** jnp.tanh({1})",
    "jnp.where({0} > {1}, jnp.sin({0}), 0.5 * {1})",
    "jnp.where({0} > 0.2, jnp.sqrt(jnp.where({0} > 0.2, {0}, 1.0)), {1})",
    "jnp.clip({0}, -1.5, 1.5) + {1}",
)
TO_SCALAR = (
    "jnp.sum({0})",
    "jnp.mean({0})",
    "jnp.max(jnp.ravel({0}) + apart({0}))",
    "jnp.min(jnp.ravel({0}) - apart({0}))",
    "jnp.prod(jnp.tanh({0}))",
    "jax.nn.logsumexp({0})",
    "jnp.sqrt(jnp.sum({0} ** 2) + 0.3)",
    "jnp.var({0})",
    "jnp.sum(jnp.sin({0}) * {0})",
    "jnp.cumsum(jnp.ravel({0}))[0]",
    "jnp.ravel({0})[-1]",
    "jnp.einsum('i,i->', jnp.ravel({0}), jnp.ravel(jnp.cos({0})))",
)
TO_SAME = (
    "jnp.cumsum({0}, axis=0)",
    "jnp.cumprod(jnp.tanh({0}), axis=0)",
    "jnp.sort({0} + apart({0}).reshape({0}.shape), axis=0)",
    "jnp.flip({0}, axis=0)",
    "jnp.roll({0}, 1, axis=0)",
    "jax.nn.softmax({0}, axis=0)",
    "jax.nn.log_softmax({0}, axis=0)",
    "{0}[::-1]",
    "{0}.at[0].set(jnp.sin({0}[-1]))",
    "{0}.at[-1].add(jnp.cos({0}[0]))",
    "{0}.at[jnp.array([0, 0])].add(jnp.sin({0}[:1]))",
    "{0}.at[0].multiply(jnp.tanh({0}[-1]))",
    "jnp.concatenate([{0}[1:], {0}[:1]])",
    "{0}[jnp.argsort(jax.lax.stop_gradient({0}), axis=0).ravel()[:1]] + 0.1 * {0}",
    "jax.lax.dynamic_update_slice({0}, jnp.sin({0}[:1]), (0,) * {0}.ndim)",
    "jnp.vectorize(lambda e: jnp.sin(e) * e)({0})",
    "jnp.transpose(jnp.transpose({0}))",
    "jax.lax.associative_scan(jnp.add, {0})",
    "jnp.stack([{0}[i] * (i + 1.0) for i in range({0}.shape[0])])",
    "jnp.real(jnp.fft.ifft(jnp.fft.fft({0}, axis=0) * (0.5 + 0.5j), axis=0))",
    "jnp.real(jnp.exp(1j * {0}))",
)
SOLVE = (
    "jnp.linalg.solve(3.0 * jnp.eye({n}) + jnp.tanh(jnp.outer({0}, {1})), {0})",
    "jnp.outer(jnp.sin({0}), {1}) @ jnp.cos({1})",
    "jnp.linalg.cholesky(2.0 * jnp.eye({n}) + jnp.outer(jnp.sin({0}), jnp.sin({0}))) @ {1}",
    "jnp.convolve({0}, jnp.sin({1}), mode='same')[:{n}]",
    "jnp.dot(jnp.outer({0}, jnp.cos({0})), jnp.sin({1}))",
)


@dataclass
class Scope:
    """The names that a statement may use: arrays and references with their shapes.

    ``forward`` says that forward mode reaches the statement, so that ``custom_vjp`` may not occur.
    """

    arrays: dict[str, Shape]
    refs: dict[str, Shape] = field(default_factory=dict)
    depth: int = 0
    forward: bool = False


class Writer:
    """Write one function. Every method appends statements and returns the name of a value."""

    def __init__(self, seed: int, size: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.indent = 0
        self.count = 0
        self.size = size

    def function(self) -> str:
        """Return the source of a function ``f`` of a vector of three and a scalar."""
        self.lines.append("def f(x, y):")
        self.indent = 1
        scope = Scope({"x": (3,), "y": ()})
        self.statements(scope, self.size)
        used = self.result(scope, ())
        self.write(f"return {used} + jnp.sin({self.scalar(scope)}) + 0.1 * jnp.sum(x) * y")
        return "\n".join(self.lines)

    def write(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def let(self, scope: Scope, text: str, shape: Shape) -> str:
        name = self.name()
        self.write(f"{name} = {text}")
        scope.arrays[name] = shape
        return name

    def statements(self, scope: Scope, count: int) -> None:
        for _ in range(count):
            self.random.choice(self.choices(scope))(scope)

    def choices(self, scope: Scope) -> Sequence[Callable[[Scope], object]]:
        plain: list[Callable[[Scope], object]] = [
            self.unary,
            self.binary,
            self.reduce,
            self.rearrange,
            self.solve,
        ]
        refs: list[Callable[[Scope], object]] = [self.new_ref]
        if scope.refs:
            refs += [self.read, self.assign, self.accumulate, self.swap]
        nested = [] if scope.depth >= 2 else NESTED
        nested = [n for n in nested if not (scope.forward and n == "custom_vjp")]
        return [*plain, *plain, *refs, *[getattr(self, name) for name in nested]]

    def pick(self, scope: Scope, shape: Shape) -> str:
        """Return an expression of a shape."""
        fitting = [name for name, found in scope.arrays.items() if found == shape]
        if fitting and self.random.random() < 0.9:
            return self.random.choice(fitting[-4:])
        if shape == ():
            return self.scalar(scope)
        return f"jnp.linspace(0.5, 1.5, {size(shape)}).reshape({shape}) * {self.scalar(scope)}"

    def scalar(self, scope: Scope) -> str:
        name, shape = self.random.choice([*scope.arrays.items()][-5:])
        return name if shape == () else self.random.choice(TO_SCALAR).format(name)

    def any_shape(self, scope: Scope) -> Shape:
        return self.random.choice([*scope.arrays.values(), (), (3,), (2,), (2, 3), (1,)])

    # Operations on arrays.

    def unary(self, scope: Scope) -> str:
        shape = self.any_shape(scope)
        return self.let(
            scope, self.random.choice(UNARY).format(f"({self.pick(scope, shape)})"), shape
        )

    def binary(self, scope: Scope) -> str:
        shape = self.any_shape(scope)
        second = () if self.random.random() < 0.3 else shape
        operands = f"({self.pick(scope, shape)})", f"({self.pick(scope, second)})"
        return self.let(scope, self.random.choice(BINARY).format(*operands), shape)

    def reduce(self, scope: Scope) -> str:
        return self.let(scope, self.scalar(scope), ())

    def rearrange(self, scope: Scope) -> str:
        shape = self.random.choice([s for s in [*scope.arrays.values(), (3,)] if s])
        name = self.let(scope, self.pick(scope, shape), shape)
        return self.let(scope, self.random.choice(TO_SAME).format(name), shape)

    def solve(self, scope: Scope) -> str:
        n = self.random.choice((1, 2, 3))
        a, b = self.pick(scope, (n,)), self.pick(scope, (n,))
        return self.let(scope, self.random.choice(SOLVE).format(f"({a})", f"({b})", n=n), (n,))

    # References.

    def new_ref(self, scope: Scope) -> None:
        shape = self.random.choice(((), (3,), (2,), (2, 3)))
        name = self.name("r")
        self.write(f"{name} = jax.new_ref(jnp.sin({self.pick(scope, shape)}))")
        scope.refs[name] = shape

    def index(self, scope: Scope, shape: Shape) -> tuple[str, Shape]:
        """Return an index of a reference, as text, and the shape of what it selects."""
        if not shape or self.random.random() < 0.3:
            return "...", shape
        if self.random.random() < 0.3:
            traced = f"jnp.int32(2.0 * jnp.abs({self.scalar(scope)})) % {shape[0]}"
            return traced, shape[1:]
        if self.random.random() < 0.2:
            return "::-1", shape
        return str(self.random.randrange(-shape[0], shape[0])), shape[1:]

    def ref_and_index(self, scope: Scope) -> tuple[str, str, Shape]:
        name = self.random.choice([*scope.refs])
        return name, *self.index(scope, scope.refs[name])

    def read(self, scope: Scope) -> str:
        name, index, shape = self.ref_and_index(scope)
        return self.let(scope, f"{name}[{index}]", shape)

    def assign(self, scope: Scope) -> None:
        name, index, shape = self.ref_and_index(scope)
        self.write(f"{name}[{index}] = jnp.sin({self.pick(scope, shape)})")

    def accumulate(self, scope: Scope) -> None:
        name, index, shape = self.ref_and_index(scope)
        self.write(f"{name}[{index}] += 0.5 * jnp.tanh({self.pick(scope, shape)})")

    def swap(self, scope: Scope) -> str:
        name, index, shape = self.ref_and_index(scope)
        value = f"jnp.cos({self.pick(scope, shape)})"
        index = "slice(None, None, -1)" if index == "::-1" else index
        return self.let(scope, f"jax.ref.swap({name}, {index}, {value})", shape)

    # Nested functions.

    def define(
        self,
        scope: Scope,
        params: Sequence[Shape],
        results: Sequence[Shape],
        *,
        closes_over: bool = True,
        refs: bool = True,
        first: str = "",
        forward: bool = False,
    ) -> str:
        """Write a nested function of ``params`` to a tuple of ``results``; return its name."""
        name = self.name("f")
        given = {self.name("a"): shape for shape in params}
        header = ", ".join([*([first] if first else []), *given])
        self.write(f"def {name}({header}):")
        self.indent += 1
        outer = scope.arrays if closes_over else {}
        seen = dict(scope.refs) if refs else {}
        inner = Scope({**outer, **given}, seen, scope.depth + 1, scope.forward or forward)
        self.statements(inner, self.random.randint(1, 3))
        used = [self.result(inner, shape) for shape in results]
        self.write(f"return {', '.join(used)}{',' if len(used) == 1 else ''}")
        self.indent -= 1
        return name

    def result(self, scope: Scope, shape: Shape) -> str:
        """Return an expression that depends on the latest values and references."""
        latest = self.pick(scope, shape)
        names = [*scope.arrays][-3:]
        parts = [self.random.choice(TO_SCALAR).format(name) for name in names]
        parts += [f"jnp.sum({name}[...])" for name in scope.refs if self.random.random() < 0.5]
        return f"jnp.sin({latest} + 0.5 * ({' + '.join(parts)}))"

    def shapes(self, scope: Scope, most: int = 2) -> list[Shape]:
        return [self.any_shape(scope) for _ in range(self.random.randint(1, most))]

    def operands(self, scope: Scope, shapes: Sequence[Shape]) -> str:
        return ", ".join([self.pick(scope, shape) for shape in shapes])

    def bind(self, scope: Scope, text: str, shapes: Sequence[Shape]) -> None:
        """Unpack a tuple of results."""
        names = [self.name() for _ in shapes]
        self.write(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")
        scope.arrays.update(zip(names, shapes, strict=True))

    def called(self, scope: Scope, wrapper: str, *, refs: bool, closes_over: bool = True) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=refs, closes_over=closes_over)
        self.bind(scope, f"{wrapper.format(name)}({self.operands(scope, params)})", results)

    def jit(self, scope: Scope) -> None:
        self.called(scope, "jax.jit({})", refs=True)

    def checkpoint(self, scope: Scope) -> None:
        self.called(scope, "jax.checkpoint({})", refs=False)

    def cond(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        names = [self.define(scope, params, results) for _ in range(2)]
        test = f"{self.scalar(scope)} > {self.random.uniform(-1, 1):.2f}"
        call = f"jax.lax.cond({test}, {', '.join(names)}, {self.operands(scope, params)})"
        self.bind(scope, call, results)

    def switch(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        names = [self.define(scope, params, results) for _ in range(3)]
        index = f"jnp.int32(3.0 * jnp.abs({self.scalar(scope)})) % 3"
        call = f"jax.lax.switch({index}, [{', '.join(names)}], {self.operands(scope, params)})"
        self.bind(scope, call, results)

    def fori(self, scope: Scope) -> None:
        carry = self.shapes(scope)
        name = self.define(scope, carry, carry, first="i")
        start = f"({self.operands(scope, carry)},)"
        steps = self.random.choice((0, 1, 2, 3))
        self.bind(
            scope, f"jax.lax.fori_loop(0, {steps}, lambda i, c: {name}(i, *c), {start})", carry
        )

    def scan(self, scope: Scope) -> None:
        carry, out = self.shapes(scope), self.any_shape(scope)
        length = self.random.choice((1, 2, 3))
        name = self.define(scope, [*carry, ()], [*carry, out])
        xs = self.pick(scope, (length,))
        n = len(carry)
        body = f"lambda c, x: (lambda out: (out[:{n}], out[{n}]))({name}(*c, x))"
        reverse = self.random.random() < 0.3
        start = f"({self.operands(scope, carry)},)"
        result, stacked = self.name("c"), self.name()
        self.write(f"{result}, {stacked} = jax.lax.scan({body}, {start}, {xs}, reverse={reverse})")
        scope.arrays[stacked] = (length, *out)
        self.bind(scope, result, carry)

    def map(self, scope: Scope) -> None:
        n, out = self.random.choice((1, 2, 3)), self.random.choice(((), (2,)))
        name = self.define(scope, [()], [out], refs=False)
        self.let(scope, f"jax.lax.map(lambda e: {name}(e)[0], {self.pick(scope, (n,))})", (n, *out))

    def vmap(self, scope: Scope) -> None:
        n, out = self.random.choice((1, 2, 3)), self.random.choice(((), (2,), (3,)))
        name = self.define(scope, [(), ()], [out], refs=False)
        operands = f"{self.pick(scope, (n,))}, {self.scalar(scope)}"
        axis = self.random.choice((0, len(out)))
        call = f"jax.vmap({name}, (0, None), ({axis},))({operands})[0]"
        self.let(scope, call, (n, *out) if axis == 0 else (*out, n))

    def inner_grad(self, scope: Scope) -> None:
        params = self.shapes(scope)
        name = self.define(scope, params, [()], refs=False)
        at = self.random.randrange(len(params))
        call = f"jax.grad(lambda *a: {name}(*a)[0], {at})({self.operands(scope, params)})"
        self.let(scope, call, params[at])

    def inner_jvp(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=False, forward=True)
        primals, tangents = (f"({self.operands(scope, params)},)" for _ in range(2))
        self.bind(scope, f"jax.jvp({name}, {primals}, {tangents})[1]", results)

    def inner_vjp(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=False)
        cts = f"({self.operands(scope, results)},)"
        self.bind(scope, f"jax.vjp({name}, {self.operands(scope, params)})[1]({cts})", params)

    def inner_linearize(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=False, forward=True)
        linear = f"jax.linearize({name}, {self.operands(scope, params)})[1]"
        self.bind(scope, f"{linear}({self.operands(scope, params)})", results)

    def custom_jvp(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=False, closes_over=False, forward=True)
        made = self.name("g")
        self.write(f"{made} = jax.custom_jvp({name})")
        inner = self.random.choice((name, name, made))
        if inner == made:  # The rule calls the function itself; its derivative is the plain one.
            rule = f"lambda p, t: ({made}(*p), jax.jvp({name}, p, t)[1])"
        else:
            rule = f"lambda p, t: jax.jvp({name}, p, t)"
        self.write(f"{made}.defjvp({rule})")
        self.bind(scope, f"{made}({self.operands(scope, params)})", results)

    def custom_vjp(self, scope: Scope) -> None:
        params, results = self.shapes(scope), self.shapes(scope)
        name = self.define(scope, params, results, refs=False, closes_over=False)
        made = self.name("g")
        self.write(f"{made} = jax.custom_vjp({name})")
        primal = self.random.choice((name, made))
        residuals = self.random.choice(("a", "(a, 'tag', a[0].shape)"))
        used = "res" if residuals == "a" else "res[0]"
        forward = f"lambda *a: ({primal}(*a), {residuals})"
        backward = f"lambda res, ct: jax.vjp({name}, *{used})[1](ct)"
        self.write(f"{made}.defvjp({forward}, {backward})")
        self.bind(scope, f"{made}({self.operands(scope, params)})", results)

    def ref_argument(self, scope: Scope) -> None:
        """Call a jitted function that takes a reference and writes to it."""
        shape = self.random.choice(((), (3,)))
        ref, name, arg, x = self.name("r"), self.name("f"), self.name("r"), self.name("a")
        self.write(f"{ref} = jax.new_ref(jnp.cos({self.pick(scope, shape)}))")
        self.write(f"def {name}({arg}, {x}):")
        self.indent += 1
        inner = Scope({**scope.arrays, x: ()}, {arg: shape}, scope.depth + 1, scope.forward)
        self.statements(inner, 2)
        self.write(f"{arg}[...] += jnp.sin({self.pick(inner, shape)})")
        self.write(f"return jnp.sin({self.scalar(inner)})")
        self.indent -= 1
        self.let(scope, f"jax.jit({name})({ref}, {self.scalar(scope)})", ())
        self.let(scope, f"jax.freeze({ref})", shape)


NESTED = (
    "jit",
    "checkpoint",
    "cond",
    "switch",
    "fori",
    "scan",
    "map",
    "vmap",
    "inner_grad",
    "inner_jvp",
    "inner_vjp",
    "inner_linearize",
    "custom_jvp",
    "custom_vjp",
    "ref_argument",
)


def size(shape: Shape) -> int:
    """Return the number of elements."""
    count = 1
    for n in shape:
        count *= n
    return count


def random_function(seed: int) -> str:
    """Return the source of a random function ``f(x, y)``."""
    return Writer(seed, size=1 + seed % 5).function()
