package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

type parcel struct {
	size   int
	stream bool
}

func (p parcel) Size() int      { return p.size }
func (p parcel) IsStream() bool { return p.stream }

func TestOutbox(t *testing.T) {
	bounds := Bounds{Frames: 2, Bytes: 100, StreamFrames: 3, StreamBytes: 40}
	for name, tc := range map[string]struct {
		put  []parcel
		want []Delivery
	}{
		"frames":    {[]parcel{{1, false}, {1, false}, {1, false}}, []Delivery{Queued, Queued, Overflow}},
		"bytes":     {[]parcel{{60, false}, {60, false}}, []Delivery{Queued, Overflow}},
		"one alone": {[]parcel{{1000, false}}, []Delivery{Queued}},
		"stream frames": {[]parcel{{1, true}, {1, true}, {1, true}, {1, true}},
			[]Delivery{Queued, Queued, Queued, Dropped}},
		"stream bytes":               {[]parcel{{30, true}, {30, true}, {10, true}}, []Delivery{Queued, Dropped, Queued}},
		"one stream frame alone":     {[]parcel{{50, true}, {1, true}}, []Delivery{Queued, Dropped}},
		"streams leave room":         {[]parcel{{30, true}, {30, true}, {60, false}}, []Delivery{Queued, Dropped, Queued}},
		"a stream overflows no peer": {[]parcel{{90, false}, {30, true}}, []Delivery{Queued, Dropped}},
		"frames do not use streams":  {[]parcel{{1, false}, {1, false}, {1, true}}, []Delivery{Queued, Queued, Queued}},
	} {
		o := NewOutbox[parcel](&bounds)
		var got []Delivery
		for _, p := range tc.put {
			got = append(got, o.Put(p))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestOutbox_CountsUntilWritten(t *testing.T) {
	o := NewOutbox[parcel](&Bounds{Frames: 1, Bytes: 100, StreamFrames: 8, StreamBytes: 80})
	o.Put(parcel{10, false})
	batch := o.Take()
	if o.Len() != 0 || len(batch) != 1 || o.Put(parcel{10, false}) != Overflow {
		t.Errorf("took %v, want one frame, and an overflow for the next", batch)
	}
	o.Written(batch[0])
	if o.Put(parcel{10, false}) != Queued {
		t.Error("a written frame still counts")
	}
	if o.IsPressed() || !o.IsRelieved() {
		t.Error("an outbox without stream frames is pressed or not relieved")
	}
	o.Put(parcel{15, true})
	if o.IsPressed() || o.IsRelieved() {
		t.Error("between an eighth and a quarter, an outbox is pressed or relieved, want neither")
	}
	if o.Put(parcel{15, true}); !o.IsPressed() {
		t.Error("above a quarter, an outbox is not pressed")
	}
}

func TestStreamCounter(t *testing.T) {
	s := NewStreamCounter(10 * time.Second)
	if _, ok := s.NextDue(); ok || s.IsRunning() {
		t.Error("a new counter is running")
	}
	s.Add(noon, glasses.TypeVideoFrame, 100)
	s.Add(noon.Add(time.Second), glasses.TypeAudioChunk, 10)
	s.Add(noon.Add(2*time.Second), glasses.TypeVideoFrame, 100)
	if due, ok := s.NextDue(); !ok || !due.Equal(noon.Add(10*time.Second)) {
		t.Errorf("NextDue() = %v, %v, want 10 s after noon", due, ok)
	}
	video := glasses.StreamCount{Type: glasses.TypeVideoFrame, Frames: 2, Bytes: 200}
	audio := glasses.StreamCount{Type: glasses.TypeAudioChunk, Frames: 1, Bytes: 10}
	if got := s.TakeDue(noon.Add(10 * time.Second)); !slices.Equal(got, []glasses.StreamCount{video}) {
		t.Errorf("the due counts are %v, want only video", got)
	}
	s.Add(noon, glasses.TypeVideoFrame, 200)
	s.Add(noon, glasses.TypeVideoFrame, 0)
	if got := s.TakeStopped(glasses.TypeDisplayClear); len(got) > 0 {
		t.Errorf("display.clear stopped %v, want nothing", got)
	}
	if got := s.TakeStopped(glasses.TypeVideoStop); !slices.Equal(got, []glasses.StreamCount{video}) {
		t.Errorf("video.stop stopped %v, want video", got)
	}
	s.Add(noon, glasses.TypeVideoFrame, 200)
	s.Add(noon, glasses.TypeVideoFrame, 0)
	if got := s.TakeAll(); !slices.Equal(got, []glasses.StreamCount{audio, video}) || s.IsRunning() {
		t.Errorf("TakeAll returned %v, want audio and video", got)
	}
}
