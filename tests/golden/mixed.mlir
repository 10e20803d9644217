module @mixed {
  func.func public @main(%0: tensor<8x3xf32> {tf.aliasing_output = 0 : i32}, %1: tensor<i32>, %2: tensor<4xf32>, %3: tensor<i1>) -> (tensor<8x3xf32>, tensor<4xf32>, tensor<3xf32>, tensor<i32>) {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<0.0> : tensor<4xf32>
    %c2 = stablehlo.constant dense<4> : tensor<i32>
    %c3 = stablehlo.constant dense<1> : tensor<i32>
    %c4 = stablehlo.constant dense<8> : tensor<i32>
    %t4_1 = stablehlo.dynamic_slice %0, %1, %c0, sizes = [1, 3] : (tensor<8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %4 = stablehlo.reshape %t4_1 : (tensor<1x3xf32>) -> tensor<3xf32>
    %5 = func.call @half_lambda_0(%4) : (tensor<3xf32>) -> (tensor<3xf32>)
    %t6_15, %6, %7 = "stablehlo.while"(%c0, %5, %c1) ({
    ^bb0(%t6_1: tensor<i32>, %t6_2: tensor<3xf32>, %t6_3: tensor<4xf32>):
      %t6_4 = stablehlo.compare LT, %t6_1, %c2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t6_4 : tensor<i1>
    }, {
    ^bb0(%t6_5: tensor<i32>, %t6_6: tensor<3xf32>, %t6_7: tensor<4xf32>):
      %t6_8 = stablehlo.dynamic_slice %2, %t6_5, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
      %t6_9 = stablehlo.reshape %t6_8 : (tensor<1xf32>) -> tensor<f32>
      %t6_10, %t6_11 = func.call @body_1(%t6_6, %t6_9) : (tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<f32>)
      %t6_12 = stablehlo.reshape %t6_11 : (tensor<f32>) -> tensor<1xf32>
      %t6_13 = stablehlo.dynamic_update_slice %t6_7, %t6_12, %t6_5 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
      %t6_14 = stablehlo.add %t6_5, %c3 : tensor<i32>
      stablehlo.return %t6_14, %t6_10, %t6_13 : tensor<i32>, tensor<3xf32>, tensor<4xf32>
    }) : (tensor<i32>, tensor<3xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<4xf32>)
    %t8_3 = stablehlo.convert %3 : (tensor<i1>) -> tensor<i32>
    %8 = "stablehlo.case"(%t8_3) ({
      %t8_1 = func.call @half_lambda_0(%6) : (tensor<3xf32>) -> (tensor<3xf32>)
      stablehlo.return %t8_1 : tensor<3xf32>
    }, {
      %t8_2 = func.call @branch_2(%6) : (tensor<3xf32>) -> (tensor<3xf32>)
      stablehlo.return %t8_2 : tensor<3xf32>
    }) : (tensor<i32>) -> tensor<3xf32>
    %t9_1 = stablehlo.reshape %8 : (tensor<3xf32>) -> tensor<1x3xf32>
    %t9_2 = stablehlo.compare GE, %1, %c0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %t9_3 = stablehlo.compare LT, %1, %c4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %t9_4 = stablehlo.and %t9_2, %t9_3 : tensor<i1>
    %t9_5 = stablehlo.dynamic_slice %0, %1, %c0, sizes = [1, 3] : (tensor<8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %t9_6 = stablehlo.select %t9_4, %t9_1, %t9_5 : tensor<i1>, tensor<1x3xf32>
    %9 = stablehlo.dynamic_update_slice %0, %t9_6, %1, %c0 : (tensor<8x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<8x3xf32>
    return %9, %7, %6, %c3 : tensor<8x3xf32>, tensor<4xf32>, tensor<3xf32>, tensor<i32>
  }
  func.func private @half_lambda_0(%0: tensor<3xf32>) -> (tensor<3xf32>) {
    %c0 = stablehlo.constant dense<0.5> : tensor<3xf32>
    %1 = stablehlo.multiply %0, %c0 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @body_1(%0: tensor<3xf32>, %1: tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
    %c0 = stablehlo.constant dense<0.0> : tensor<f32>
    %t2_1 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.subtract %0, %t2_1 : tensor<3xf32>
    %3 = stablehlo.reduce(%0 init: %c0) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    return %2, %3 : tensor<3xf32>, tensor<f32>
  }
  func.func private @branch_2(%0: tensor<3xf32>) -> (tensor<3xf32>) {
    %1 = stablehlo.negate %0 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
