package backendapi

import "testing"

func TestDollars(t *testing.T) {
	for micro, want := range map[int64]string{
		0: "$0.00", 1: "$0.000001", 500: "$0.0005", 10_000: "$0.01", 61_000: "$0.061", 120_500: "$0.1205",
		1_200_000: "$1.20", 1_500_000: "$1.50", 2_000_000: "$2.00", -500: "-$0.0005", -10_000: "-$0.01",
	} {
		if got := Dollars(micro); got != want {
			t.Errorf("Dollars(%d) = %s, want %s", micro, got, want)
		}
	}
}
