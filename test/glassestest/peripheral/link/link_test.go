package link

import (
	"errors"
	"slices"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

const notifies = "00000001-0000-0000-0000-000000000000"

func connected(t *testing.T) *Link {
	t.Helper()
	l := New(peripheral.Advertisement{Name: "x"}, []peripheral.Service{{
		Characteristics: []peripheral.Characteristic{{UUID: notifies, Flags: []string{"notify"}}},
	}})
	if err := errors.Join(l.Connect(10, 23), l.Subscribe(10, notifies, true)); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLink_RunsStepsInOrder(t *testing.T) {
	l := connected(t)
	var ran []int64
	for i, ms := range []int64{5, 3, 5, 3} {
		l.After(ms, func() { ran = append(ran, l.Now(), int64(i)) })
	}
	if at, ok := l.Next(); !ok || at != 13 {
		t.Errorf("next step at %d, %v", at, ok)
	}
	l.Tick(14)
	l.Tick(100)
	l.Tick(50)
	if want := []int64{13, 1, 13, 3, 15, 0, 15, 2}; !slices.Equal(ran, want) || l.Now() != 100 {
		t.Errorf("ran %v at %d, want %v", ran, l.Now(), want)
	}
	if at, ok := l.Next(); ok {
		t.Errorf("another step at %d", at)
	}
}

func TestLink_ForgetsWithTheConnection(t *testing.T) {
	l := connected(t)
	l.AfterLinked(5, func() { t.Error("a step outlived its connection") })
	l.Disconnect(11)
	l.Disconnect(12)
	if err := l.Connect(13, 1000); err != nil || l.Payload() != peripheral.MaxMTU-3 {
		t.Fatalf("payload %d: %v", l.Payload(), err)
	}
	l.Notify(notifies, []byte{1})
	l.Tick(100)
	if out := l.Take(); out != nil {
		t.Errorf("output %v without a subscription", out)
	}
}
