"""Programs for which a law once did not hold, from its reports."""

from __future__ import annotations

from effax.ir.text.parser import parse
from effax.testing import laws


def test_scan_feeds_back_what_is_not_batched_into_what_is() -> None:
    jaxpr = parse("""
        { lambda ; a:f64[3] b:f64[] c:f64[]. let
            d:f64[] e:f64[] f:f64[3] = scan[
              jaxpr={ lambda ; a:f64[] b:f64[] c:f64[]. let d:f64[] = sin a in (a, a, d) }
              length=3
              n_carry=2
              n_consts=0
              reverse=False
              unroll=1
            ] b c a
          in (d, e, f) }
    """)
    for seed in range(8):
        laws.vmap_is_stacking(jaxpr, seed)
        laws.vmap_commutes_with_jvp(jaxpr, seed)


def test_lowering_of_a_literal_that_nothing_uses() -> None:
    jaxpr = parse("""
        { lambda ; a:Ref{f32[2]} b:f32[]. let
            c:f32[2] = iota[dimension=0 dtype=float32 shape=(2,)]
            a[0:i32[]:0:i32[]+2] += c
          in () }
    """)
    laws.lowering_agrees_with_evaluation(jaxpr)


def test_batched_predicate_that_is_weak() -> None:
    jaxpr = parse("""
        { lambda ; a:Ref{f64[3]} b:~bool[]. let
            cond[
              branches=(
                { lambda ; a:Ref{f64[3]}. let  in () }
                { lambda ; a:Ref{f64[3]}. let
                    b:f64[3] = broadcast_in_dim[broadcast_dimensions=() shape=(3,)] 0.5:f64[]
                    a[...] += b
                  in () }
              )
            ] b a
          in () }
    """)
    laws.passes_are_pure(jaxpr)
    laws.vmap_is_stacking(jaxpr)


def test_swap_of_values_that_meet_at_one_position() -> None:
    jaxpr = parse("""
        { lambda ; a:f64[] b:Ref{f64[1]}. let
            c:i32[2] = iota[dimension=0 dtype=int32 shape=(2,)]
            d:f64[2] = broadcast_in_dim[broadcast_dimensions=() shape=(2,)] a
            e:f64[2], b[c] <- b[c], d
          in (e,) }
    """)
    laws.transpose_is_adjoint(jaxpr, (True, True))
    laws.transpose_is_its_own_inverse(jaxpr, (True, True))


def test_split_loop_does_not_read_what_it_does_not_touch() -> None:
    jaxpr = parse("""
        { lambda ; a:f64[] b:Ref{f64[]}. let
            c:i32[] d:f64[] = while[
              body={ lambda ; a:Ref{f64[]} b:i32[] c:f64[]. let
                  d:i32[] = add b 1:i32[]
                in (d, c) }
              cond={ lambda ; a:Ref{f64[]} b:i32[] c:f64[]. let
                  d:bool[] = lt b 2:i32[]
                in (d,) }
              n_consts=1
            ] b 0:i32[] a
          in (c, d) }
    """)
    for seed in range(8):
        laws.partial_eval_recomposes(jaxpr, seed)
