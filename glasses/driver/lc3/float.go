package lc3

import "math"

// addProduct returns sum + a*b, with both operations rounded on every processor.
func addProduct(sum, a, b float64) float64 { return sum + float64(a*b) }

// cosine returns the cosine of k/n turns, k >= 0, n > 0.
func cosine(k, n int) float64 {
	k %= n
	if 2*k > n {
		k = n - k
	}
	angle := 2 * math.Pi * float64(k) / float64(n)
	square := angle * angle
	sum, term := 1.0, 1.0
	for i := 1; i <= 27; i += 2 { // Taylor series, for at most half a turn
		term = float64(-term*square) / float64(i*(i+1))
		sum += term
	}
	return sum
}

// exp2 returns 2 to the power of x.
func exp2(x float64) float64 {
	x = float64(x) // rounds a product that a caller passes, so that it is not fused with the addition below
	whole := math.Floor(x + 0.5)
	y := (x - whole) * math.Ln2
	power := 1.0
	for i := 13; i > 0; i-- { // Taylor series of e to the power of y
		power = 1 + float64(power*y)/float64(i)
	}
	return math.Ldexp(power, int(whole))
}
