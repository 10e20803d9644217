"""The modules of names that lazy packages import on first use; ``make surface`` writes this file.

Names follow their module; ``name=original`` is imported under another name, and the package itself
has its modules. In ``SHADOWED`` are names of functions that modules of the package have too.
"""

from __future__ import annotations

from typing import Final

INDEX: Final[dict[str, str]] = {
    "effax": """\
effax: ad ad_checkpoint checkpoint_policies core custom_batching custom_derivatives debug
distributed dlpack dtypes errors experimental export flatten_util image lax monitoring nn numpy
ops passes profiler random ref scipy sharding show stages tree tree_util typing version
effax.api.apply_passes: apply_passes
effax.api.autodiff: grad jvp linearize value_and_grad
effax.api.callbacks: pure_callback
effax.api.cost: cost
effax.api.custom.closures: closure_convert custom_gradient
effax.api.custom.decorators: custom_jvp custom_rules custom_vjp
effax.api.devices: block_until_ready copy_to_host_async default_backend device_count device_get
device_put devices effects_barrier local_device_count local_devices print_environment_info
process_count process_index process_indices
effax.api.fwd_and_bwd: fwd_and_bwd
effax.api.jacobian: hessian jacfwd jacobian=jacrev jacrev
effax.api.jit: jit
effax.api.jit_options: CompilerEffortLevel Inline
effax.api.linear: linear_transpose
effax.api.live_arrays: live_arrays
effax.api.make_arrays: make_array_from_callback make_array_from_process_local_data
make_array_from_single_device_arrays
effax.api.naming: named_call
effax.api.pmap: pmap
effax.api.remat: remat
effax.api.shard_map: shard_map smap
effax.api.signature: effects_of signature_of
effax.api.staging: ShapeDtypeStruct eval_shape make_jaxpr typeof
effax.api.vjp: VJP vjp
effax.arrays.array: Array
effax.arrays.batching: vmap
effax.arrays.binding: ensure_compile_time_eval=folding
effax.arrays.config: config debug_infs debug_nans enable_x64 make_user_context
effax.arrays.placed: Shard
effax.arrays.ref: Ref
effax.arrays.ref_functions: empty_ref free_ref freeze new_ref
effax.arrays.setting_blocks: allow_f16_reductions array_garbage_collection_guard auto_pcast
check_tracer_leaks checking_leaks debug_key_reuse default_device default_matmul_precision
default_prng_impl disable_jit enable_checks enable_custom_prng explain_cache_misses
jax2tf_associative_scan_reductions legacy_prng_key log_compiles no_execution no_tracing
numpy_dtype_promotion numpy_rank_promotion remove_size_one_mesh_axis_from_type
softmax_custom_jvp thread_guard threefry_partitionable transfer_guard
transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
effax.checkpoint: checkpoint
effax.ir.dtypes: float0=FLOAT0
effax.ir.state: clear_caches
effax.ir.trace: named_scope
effax.lax: ds stop_gradient
effax.lax.placement: reshard
effax.lowering.xla: Device
effax.sharding: NamedSharding P=PartitionSpec make_mesh set_mesh
""",
    "effax.ir": """\
effax.ir.analysis.check: check checked
effax.ir.analysis.cost.record: Cost LiveValue LoopCost ProgramCost WorkTable
effax.ir.analysis.dataflow: Analysis Facts Visit analyze walk_facts
effax.ir.analysis.diff: Change Diff diff
effax.ir.analysis.faults: Fault FaultKind
effax.ir.analysis.queries: DefUse Definition EffectOrder Liveness PathStep Place Use def_use
effect_order effects_on_variables free_variables liveness size walk
effax.ir.axes: Axes Axis
effax.ir.build: Builder Template TemplateEqn Where lit template typing_of
effax.ir.dtypes: DType as_dtype
effax.ir.edit.alpha: alpha_eq renumbered
effax.ir.edit.loops: LoopBody LoopStep add_carry add_constants add_xs add_ys drop_carries
drop_constants drop_xs drop_ys permute_carries permute_constants permute_xs permute_ys
effax.ir.edit.mapping: EqnChange map_eqns
effax.ir.edit.operations: Edited equation everywhere insert map_prim_subjaxprs map_subjaxprs
remove rename replace_eqn splice substitute with_prim
effax.ir.edit.signature: add_inputs add_results drop_inputs drop_results permute_inputs
permute_results
effax.ir.errors: BadArgument BadAxis BadFormat BadIndex BadRule BadSlice ConcretizationError
Divergence EffaxError IllTyped InconclusiveDimension LeakedTracer LoweringError MissingRule
NotApplicable NotFitting NotSupported ParseError RefError Refusal TooDeep TransformError
UnboundAxis Unfinished
effax.ir.eval.checked: evaluate
effax.ir.eval.numpy: literal_value
effax.ir.indexing: Dim Indexer Mode Pick Span whole
effax.ir.primitive: ByReference Primitive Region Typing Value
effax.ir.regions.forms: branch_regions call_region loop_region while_regions
effax.ir.registry: Registry registry
effax.ir.source: SavedSource Source
effax.ir.syntax: Atom ClosedJaxpr Eqn Jaxpr Lit Scalar Var has_side_effects
effax.ir.text.json: from_json to_json
effax.ir.text.parser: parse
effax.ir.text.printer: eqn_str pretty references
effax.ir.types: ArrayType RefKind RefType Shape Type array_type is_inexact ref_type tangent_type
type_of_value
effax.ir.work: Work moved
""",
    "effax.ir.prims": """\
effax.ir.prims.arith: Abs Add Ceil Div Floor Mul Neg Nextafter Rem RoundEven Sign Square
StrongZeroMul Sub
effax.ir.prims.check: Check Checks DivisionFailure Failure Failures IndexFailure NanFailure
effax.ir.prims.collective: AllGather AllGatherInvariant AllReduce AllToAll AxisIndex Collective
Gathering PPermute Pmax Pmin Psum PsumInvariant Pvary ReduceScatter
effax.ir.prims.common.operands: Binary Elementwise Nullary Unary
effax.ir.prims.compare: And Clamp Eq Ge Gt IsFinite Le Lt Max Min Ne Not Or PopulationCount
ShiftLeft ShiftRightArithmetic ShiftRightLogical Xor
effax.ir.prims.cond: Cond
effax.ir.prims.contract: DotDimensionNumbers DotGeneral
effax.ir.prims.conv: ConvGeneralDilated
effax.ir.prims.convert: BitcastConvertType Complex Conj ConvertElementType Copy Imag Real
ReducePrecision SelectN StopGradient StraightThrough
effax.ir.prims.custom: BackwardRule BatchedProgram CustomJvp CustomLinear CustomVjp CustomVmap
ForwardRule ReverseRule SparseBackward SparseJvp SparseVjp VmapRule
effax.ir.prims.fft: Fft FftType
effax.ir.prims.host: DceSink DebugCallback HostFunction IoCallback PureCallback
effax.ir.prims.index: Combining DynamicSlice DynamicUpdateSlice Gather Scatter ScatterAdd
ScatterMax ScatterMin ScatterMul
effax.ir.prims.jit: Composite Jit
effax.ir.prims.keys: RandomUnwrap RandomWrap RngBitGenerator
effax.ir.prims.linalg: Cholesky Eig Eigh Lu Op Qr Schur Svd TriangularSolve
effax.ir.prims.math: Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Erf Erfc Exp Exp2
Expm1 IntegerPow Log Log1p Logistic Magnitude Pow Rsqrt Sin Sinh Sqrt Tan Tanh Transcendental
effax.ir.prims.reduce: CumLogSumExp CumMax CumMin CumProd CumSum Cumulative ReduceAnd ReduceMax
ReduceMin ReduceOr ReduceProd ReduceSum Reduction
effax.ir.prims.refs: AddUpdate EmptyRef FreeRef Freeze Get NewRef Swap
effax.ir.prims.remat: Kept Name OptimizationBarrier Remat SaveAs SaveEither SavePolicy SaveRule
effax.ir.prims.scan: Scan
effax.ir.prims.shape: BroadcastInDim Concatenate Constant ConstantArray DimValue ExpandDims Iota
Pad Reshape Rev Slice Squeeze Transpose
effax.ir.prims.shard: ShardMap ShardingConstraint
effax.ir.prims.solve: LinearSolve Root SolveRule
effax.ir.prims.sort: ArgReduction Argmax Argmin Sort TopK
effax.ir.prims.special: BesselI0e BesselI1e Digamma Igamma IgammaGradA Igammac Lgamma Polygamma
RandomGammaGrad RegularizedIncompleteBeta RegularizedIncompleteBetaGradA
RegularizedIncompleteBetaGradB Zeta ZetaGradX
effax.ir.prims.while_: While
""",
    "effax.lax": """\
effax.ir.prims: DotDimensionNumbers
effax.lax: linalg
effax.lax.associative: associative_scan
effax.lax.barriers: after_all create_token dce_sink optimization_barrier stage
effax.lax.bits: bitcast_convert_type clz mulhi reduce_precision
effax.lax.branches: cond switch
effax.lax.composites: composite platform_dependent
effax.lax.control: map scan
effax.lax.convolution: ConvDimensionNumbers conv conv_dimension_numbers conv_general_dilated
conv_transpose conv_with_general_padding padtype_to_pads
effax.lax.creation: broadcasted_iota empty full full_like iota shape_as_value zeros_like
zeros_like_array
effax.lax.elementwise: RoundingMethod abs acos acosh add asin asinh atan atan2 atanh bitwise_and
bitwise_not bitwise_or bitwise_xor cbrt ceil clamp complex conj convert_element_type cos cosh
div eq erf erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le log log1p logistic lt
max min mul ne neg nextafter population_count pow real reciprocal rem round rsqrt select
select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square
stop_gradient sub tan tanh
effax.lax.exchange: pargmax pargmin ragged_all_to_all
effax.lax.fft: FftType fft
effax.lax.foreach: foreach
effax.lax.gather_scatter: GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers
gather scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub
effax.lax.index: ds dslice dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim
dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim index_take
effax.lax.nearest: approx_max_k approx_min_k
effax.lax.parallel: all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin
ppermute pshuffle psum psum_scatter pswapaxes pvary
effax.lax.patches: conv_general_dilated_local conv_general_dilated_patches
conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple
reduce_window_shape_tuple
effax.lax.placement: with_sharding_constraint
effax.lax.polynomials: log2 one_minus_square polynomial
effax.lax.precision: AccuracyMode DotAlgorithm DotAlgorithmPreset Precision Tolerance
effax.lax.ragged: RaggedDotDimensionNumbers ragged_dot ragged_dot_general scaled_dot
effax.lax.reduce: argmax argmin batch_matmul cumlogsumexp cummax cummin cumprod cumsum dot
dot_general reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum sort sort_key_val
top_k
effax.lax.rng: RandomAlgorithm rng_bit_generator rng_uniform
effax.lax.shape: broadcast broadcast_in_dim broadcast_like broadcast_shapes broadcast_to_rank
collapse concatenate expand_dims index_in_dim pad reshape rev slice slice_in_dim split squeeze
stack tile transpose unstack
effax.lax.solvers: custom_linear_solve custom_root
effax.lax.special: bessel_i0e bessel_i1e betainc digamma erf_inv igamma igamma_grad_a igammac
lgamma polygamma random_gamma_grad zeta
effax.lax.whiles: fori_loop while_loop
effax.lax.windows: reduce reduce_window reduce_xor
""",
    "effax.lowering": """\
effax.lowering.executables: CompiledModule compile load
""",
    "effax.nn": """\
effax.nn: initializers
effax.nn.activations: celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity
leaky_relu log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus
sparse_sigmoid squareplus swish tanh
effax.nn.attention: dot_product_attention
effax.nn.normalization: log_softmax logmeanexp logsumexp one_hot softmax standardize
effax.nn.scaled: get_scaled_dot_general_config scaled_dot_general scaled_matmul
""",
    "effax.numpy": """\
effax.arrays.creation: array asarray copy empty empty_like full full_like ones ones_like zeros
zeros_like
effax.arrays.shapes: atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes
broadcast_to diagonal expand_dims flip fliplr flipud matrix_transpose moveaxis permute_dims
ravel reshape rot90 squeeze swapaxes transpose
effax.numpy: fft linalg
effax.numpy.accumulation: cumulative_prod cumulative_sum
effax.numpy.arithmetic: around clip copysign divmod fix floor_divide fmax fmin fmod heaviside
mod modf pow power remainder round trunc
effax.numpy.array_api: __array_api_version__ __array_namespace_info__ from_dlpack
effax.numpy.bits: packbits spacing unpackbits
effax.numpy.choices: choose compress piecewise trim_zeros
effax.numpy.comparison: allclose array_equal array_equiv
effax.numpy.constants: bool dtype e euler_gamma inf nan ndarray newaxis pi
effax.numpy.convolution: convolve correlate
effax.numpy.covariance: corrcoef cov
effax.numpy.diagonals: diag diagflat eye identity tri tril triu
effax.numpy.differences: ediff1d gradient trapezoid unwrap
effax.numpy.dtypes: ComplexWarning bfloat16 bool_ can_cast cdouble character complex128
complex64 complex_ complexfloating csingle double finfo flexible float16 float32 float4_e2m1fn
float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic iinfo inexact
int1 int16 int2 int32 int4 int64 int8 int_ integer isdtype issubdtype number object_
promote_types result_type signedinteger single uint uint1 uint16 uint2 uint32 uint4 uint64 uint8
unsignedinteger
effax.numpy.einstein: einsum einsum_path
effax.numpy.files: frombuffer fromfile fromfunction fromiter fromstring load save savez
effax.numpy.grids: c_ index_exp mgrid ogrid r_ s_
effax.numpy.histograms: histogram histogram2d histogram_bin_edges histogramdd
effax.numpy.index: take take_along_axis
effax.numpy.insertion: Blocks block delete dsplit insert resize rollaxis
effax.numpy.join: append array_split column_stack concat concatenate dstack hsplit hstack repeat
roll split stack tile unstack vsplit vstack
effax.numpy.lift: apply_along_axis apply_over_axes interp vectorize
effax.numpy.matrix_positions: diag_indices_from mask_indices tril_indices_from triu_indices_from
effax.numpy.nanreduce: nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod
nanstd nansum nanvar
effax.numpy.padding: pad
effax.numpy.partitions: argpartition partition sort_complex top_k
effax.numpy.polynomial_fits: polyfit roots
effax.numpy.polynomials: poly polyadd polyder polydiv polyint polymul polysub polyval vander
effax.numpy.positions: argwhere bincount diag_indices extract flatnonzero indices ix_ nonzero
ravel_multi_index select tril_indices triu_indices unravel_index where
effax.numpy.predicates: iscomplex isfinite isinf isnan isneginf isposinf isreal logical_not
signbit
effax.numpy.printing: array_repr array_str get_printoptions printoptions set_printoptions
effax.numpy.products: dot matmul matvec vdot vecdot vecmat
effax.numpy.properties: iscomplexobj isrealobj isscalar iterable ndim shape size
effax.numpy.quantiles: median nanmedian nanpercentile nanquantile percentile quantile
effax.numpy.ranges: arange geomspace linspace logspace meshgrid
effax.numpy.reduce: all amax amin any argmax argmin count_nonzero cumprod cumsum max min minmax
prod ptp sum
effax.numpy.sets: UniqueAllResult UniqueCountsResult UniqueInverseResult intersect1d setdiff1d
setxor1d union1d unique_all unique_counts unique_inverse unique_values
effax.numpy.sorting: argsort diff digitize isin lexsort searchsorted sort unique
effax.numpy.special: angle deg2rad degrees fabs frexp gcd hypot isclose lcm ldexp log10 log2
nan_to_num rad2deg radians reciprocal sinc
effax.numpy.statistics: average mean std var
effax.numpy.tensor_products: cross inner kron outer tensordot trace
effax.numpy.ufuncs: abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh
asin asinh astype atan atan2 atanh bitwise_count bitwise_invert bitwise_left_shift bitwise_not
bitwise_right_shift cbrt ceil conj conjugate cos cosh divide equal exp exp2 expm1 float_power
floor greater greater_equal imag invert left_shift less less_equal log log1p nextafter not_equal
positive real right_shift rint sign sin sinh sqrt square tan tanh true_divide
effax.numpy.universal: add bitwise_and bitwise_or bitwise_xor frompyfunc logaddexp logaddexp2
logical_and logical_or logical_xor maximum minimum multiply negative subtract ufunc
effax.numpy.updates: fill_diagonal place put put_along_axis
effax.numpy.windows: bartlett blackman hamming hanning i0 kaiser
""",
    "effax.passes": """\
effax.passes.guarantees: EXACT Guarantee SIMPLIFIES
effax.passes.library: ALL accumulate cse dce dead_stores fold forward_stores fuse_accumulations
hoist inline loop_carries optimize simplify unroll unroll_to
effax.passes.lift: Change as_pass
effax.passes.pipeline: AnyPass Fixpoint Pass Pipeline When fixpoint guarantees_of passes_of
pipeline when
effax.passes.watch: Broken Culprit Record Run bisect dump verified watch
effax.transforms.framework.rewriter: Transform
effax.transforms.framework.runner: unwrap
""",
    "effax.random": """\
effax.random.ball: ball generalized_normal
effax.random.binomial: binomial multinomial
effax.random.choices: categorical choice permutation
effax.random.distributions: cauchy exponential gumbel laplace logistic lognormal normal
truncated_normal
effax.random.families: double_sided_maxwell geometric maxwell pareto rayleigh triangular wald
weibull_min
effax.random.gamma: beta chisquare dirichlet f gamma loggamma t
effax.random.keys: Key PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data
effax.random.poisson: poisson
effax.random.uniform: bernoulli bits rademacher randint uniform
effax.random.vectors: multivariate_normal orthogonal
""",
    "effax.scipy": """\
effax.scipy: cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial
special stats
""",
    "effax.transforms": """\
effax.transforms.checkify.engine: CheckedProgram checkify
effax.transforms.discharge: Discharged discharge
effax.transforms.framework.rules: BatchBuilder BatchOut BatchRule DischargeOut DischargeRule
HasRules Indivisible JvpOut JvpRule Linear NO_RULES PartialEvalOut PartialEvalRule Policy
RuleBuilder RuleSet Rules TransposeRule Unsupported
effax.transforms.framework.runner: unwrap
effax.transforms.jvp: Jvp jvp
effax.transforms.linearize: Linearized linearize
effax.transforms.optimize.accumulate: accumulate fuse_accumulations
effax.transforms.optimize.cse: cse
effax.transforms.optimize.dce: Dce dce
effax.transforms.optimize.dead_stores: dead_stores
effax.transforms.optimize.fold: fold
effax.transforms.optimize.forward_stores: forward_stores
effax.transforms.optimize.inline: inline
effax.transforms.optimize.licm: hoist loop_carries
effax.transforms.optimize.outline: outline
effax.transforms.optimize.rewrite: ANY AnyNumber App BOOL Body COMPLEX CostFunction FLOATS Hole
INTEGERS Index IndexHole Let Match NUMBERS Number Param Pattern REALS Rest RewriteRule Right
Sample Seq equation_count match rewriting weighted
effax.transforms.optimize.rule_parser: parse_rule
effax.transforms.optimize.simplify: simplify
effax.transforms.optimize.unroll: unroll
effax.transforms.partial_eval.partial_eval: FromInput FromOutput PartialEval Residual
partial_eval recompose
effax.transforms.reverse.bounded_while: Checkpoints bounded
effax.transforms.reverse.engine: Reverse reverse
effax.transforms.rules.default: DEFAULT_RULES
effax.transforms.transpose.cotangent_spec: CotangentSpec CotangentSpecs DontWant GradRef
GradValue NonLinear ThreadedRef
effax.transforms.transpose.engine: Transposed transpose
effax.transforms.vmap.engine: Vmapped vmap
""",
}

SHADOWED: Final[dict[str, str]] = {
    "effax": """\
checkpoint
""",
    "effax.ir": """\
registry
""",
    "effax.lax": """\
fft foreach reduce
""",
    "effax.passes": """\
pipeline watch
""",
    "effax.random": """\
ball binomial gamma poisson uniform
""",
    "effax.transforms": """\
checkify discharge jvp linearize partial_eval reverse transpose vmap
""",
}
