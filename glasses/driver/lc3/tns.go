package lc3

const (
	tnsMaxOrder = 8
	tnsStart    = 12 // first coefficient to be filtered
)

// tns is the filter of temporal noise shaping, which predicts coefficients from lower ones. Its order is the number of
// its reflection coefficients. The others are 0, and without a filter all are 0.
type tns struct {
	order      int
	reflection [tnsMaxOrder]float64
}

func readTNS(r *bitReader) tns {
	var t tns
	if !r.flag() {
		return t
	}
	t.order = 1 + r.symbol(tnsOrderModel[:])
	for i := range t.order {
		quantized := r.symbol(tnsCoefficientModels[i][:]) - 8
		t.reflection[i] = cosine(17-2*quantized, 4*17) // sin(quantized * pi/17)
	}
	return t
}

// apply runs the lattice filter over a spectrum.
func (t *tns) apply(x []float64) {
	if t.order == 0 {
		return
	}
	var state [tnsMaxOrder]float64
	last := t.order - 1
	for i := tnsStart; i < len(x); i++ {
		value := addProduct(x[i], -t.reflection[last], state[last])
		for k := last - 1; k >= 0; k-- {
			value = addProduct(value, -t.reflection[k], state[k])
			state[k+1] = addProduct(state[k], t.reflection[k], value)
		}
		state[0] = value
		x[i] = value
	}
}
