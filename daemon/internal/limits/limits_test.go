package limits

import "testing"

// A process that reached its own limit leaves the rest to others, and every use that ends makes room again.
func TestUsage_BoundsEachProcessAndAll(t *testing.T) {
	u := New(4, 2)
	for _, step := range []struct {
		pid, extra int
		want       Excess
	}{
		{1, 0, Excess{}}, {1, 0, Excess{}}, {1, 0, Excess{PID: 1, Limit: 2}}, {2, 0, Excess{}}, {0, 0, Excess{}},
		{0, 0, Excess{Limit: 4}}, {2, 0, Excess{Limit: 4}}, {1, 1, Excess{}}, {3, 1, Excess{Limit: 5}},
	} {
		got := u.Acquire(step.pid, step.extra)
		if got == nil {
			got = &Excess{}
		}
		if *got != step.want {
			t.Errorf("process %d with %d extra: got %+v, want %+v", step.pid, step.extra, *got, step.want)
		}
	}
	if used, started := u.Counts(); used != 5 || started != 5 {
		t.Errorf("%d used and %d started, want 5 of each", used, started)
	}
	u.Release(1, 3)
	if e := u.Acquire(1, 0); e != nil {
		t.Errorf("after its uses ended, process 1 got %+v", e)
	}
	u.Release(1, 1)
	if len(u.processes) != 2 { // process 2 and the unknown one
		t.Errorf("processes without uses are still counted: %v", u.processes)
	}
}

// A limit of 0 means no limit, and the limit of one process does not apply to an unknown process.
func TestUsage_WithoutLimit(t *testing.T) {
	u := New(0, 1)
	for range 3 {
		if e := u.Acquire(0, 0); e != nil {
			t.Fatalf("an unknown process was refused: %+v", e)
		}
	}
	if u.Acquire(7, 0) != nil || u.Acquire(7, 0) == nil {
		t.Error("the limit of one process is not 1")
	}
	if text := u.Acquire(7, 0).OfProcess("calls"); text != "process 7 reached its limit of 1 calls" {
		t.Errorf("unexpected text %q", text)
	}
}
