package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/chart"
)

var update = flag.Bool("update", false, "write the pictures anew")

func week(n ...int64) chart.Chart {
	c := chart.Chart{ID: "sessions", Title: "Sessions by day", Desc: "From 1 to 7 January, at most 12."}
	for i, v := range n {
		c.Points = append(c.Points, chart.Point{Label: fmt.Sprint(i+1, " Jan"), N: v})
	}
	return c
}

func TestPictures(t *testing.T) {
	some := week(0, 3, 12, 7, 7, 1, 4)
	today, first := some, week(3)
	today.Unfinished, first.Unfinished = true, true
	for name, svg := range map[string]string{
		"line.svg": some.Line(), "bars.svg": some.Bars(),
		"line-today.svg": today.Line(), "bars-today.svg": today.Bars(), "one-today.svg": first.Line(),
		"empty.svg": week().Line(), "zeros.svg": week(0, 0, 0).Bars(), "one.svg": week(1).Line(),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(svg+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if svg+"\n" != string(want) {
			t.Errorf("%s has changed; if that is intended, run with -update\n%s", name, svg)
		}
		wellFormed(t, svg)
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
	}
	for _, bad := range []string{`"NaN`, `"+Inf`, "<script", "<style"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%s in %s", bad, svg)
		}
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[int64][]int64{
		0: {0, 1}, 1: {0, 1}, 4: {0, 1, 2, 3, 4}, 7: {0, 2, 4, 6, 8}, 12: {0, 5, 10, 15}, 100: {0, 20, 40, 60, 80, 100},
		130_000: {0, 50_000, 100_000, 150_000},
	} {
		if got := chart.Ticks(most); !slices.Equal(got, want) {
			t.Errorf("ticks up to %d: got %v, want %v", most, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 1500: "1.5k", 12_345: "12.3k", 123_456: "123k",
		3_400_000: "3.4M", math.MaxInt64: "9.2E", -1500: "-1.5k"} {
		if got := chart.Short(n); got != want {
			t.Errorf("short form of %d: got %s, want %s", n, got, want)
		}
	}
}

func FuzzChart(f *testing.F) {
	f.Add("1 Jan", int64(12), int64(0), 7)
	f.Add("<b>&\x00\xff", int64(math.MaxInt64), int64(math.MinInt64), 100)
	f.Fuzz(func(t *testing.T, label string, a, b int64, n int) {
		c := chart.Chart{ID: "x", Title: label, Desc: label, Unfinished: n%2 == 1}
		for i := range min(max(n, 0), 200) {
			c.Points = append(c.Points, chart.Point{Label: label, N: []int64{a, b, a ^ b}[i%3]})
		}
		for _, svg := range []string{c.Line(), c.Bars()} {
			wellFormed(t, svg)
		}
		ticks := chart.Ticks(a)
		if len(ticks) < 2 || len(ticks) > 12 || !slices.IsSorted(ticks) {
			t.Errorf("ticks up to %d: got %v, want 2 to 12 in ascending order", a, ticks)
		}
	})
}
