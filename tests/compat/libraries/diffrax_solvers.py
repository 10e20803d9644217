"""Solvers of ordinary differential equations: adaptive, implicit, dense, with events."""

import diffrax
import jax
import jax.numpy as jnp


def lotka_volterra(t, y, args):
    a, b, c, d = args
    prey, hunters = y
    return jnp.array([a * prey - b * prey * hunters, -c * hunters + d * prey * hunters])


term = diffrax.ODETerm(lotka_volterra)
args = (1.0, 0.5, 1.2, 0.3)
y0 = jnp.array([2.0, 1.0])


def solve(solver, **options):
    return diffrax.diffeqsolve(term, solver, 0.0, 3.0, 0.1, y0, args, **options)


controller = diffrax.PIDController(rtol=1e-5, atol=1e-5)
saveat = diffrax.SaveAt(ts=jnp.linspace(0.0, 3.0, 4))
solution = solve(diffrax.Tsit5(), stepsize_controller=controller, saveat=saveat)
print("tsit5", solution.ys, solution.stats["num_steps"])
for solver in (diffrax.Euler(), diffrax.Heun(), diffrax.Dopri5()):
    print(type(solver).__name__, solve(solver).ys)
implicit = solve(
    diffrax.Kvaerno3(), stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4)
)
print("kvaerno3", implicit.ys)
dense = solve(diffrax.Tsit5(), saveat=diffrax.SaveAt(dense=True))
print("dense", dense.evaluate(1.3), dense.derivative(1.3))

falling = diffrax.ODETerm(lambda t, y, args: jnp.array([y[1], -9.8]))
event = diffrax.Event(lambda t, y, args, **_: y[0] < 0.0)
landed = diffrax.diffeqsolve(
    falling, diffrax.Tsit5(), 0.0, 5.0, 0.05, jnp.array([10.0, 0.0]), event=event
)
print("event", landed.ts, landed.result == diffrax.RESULTS.event_occurred)

steps = jax.vmap(
    lambda y0: (
        diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, args, stepsize_controller=controller
        ).ys
    )
)
print("vmap", steps(jnp.array([[2.0, 1.0], [1.0, 0.5]])))
