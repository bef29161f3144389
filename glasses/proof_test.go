package glasses

import (
	"encoding/json"
	"testing"
	"testing/fstest"
	"time"
)

func exampleRecord() BenchRecord {
	return BenchRecord{
		Record: RecordVersion, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Against: AgainstReal,
		DeviceModel: "even_g1", Carrier: "bluez", Firmware: map[string]string{"left": "1.5.6"}, Service: "0.1.0",
		System: "linux/amd64", Connect: BenchConnect{Ms: 4200},
		Pictures: BenchPictures{Asked: 2, Ms: []int64{1600, 1700}, MedianMs: 1650, LeastMs: 1600, MostMs: 1700},
		Battery:  map[string]int{"left": 80}, Inputs: BenchInputs{Seen: []string{"tap right"}},
		Microphone: BenchMicrophone{Chunks: 30, ListenMs: 3000, LevelDB: -30, PeakDB: -9},
		Reconnect:  BenchReconnect{Skipped: "by the person"},
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestProofOf_KnowsEachModel(t *testing.T) {
	unknown := ProofOf("unknown")
	for _, m := range Models() {
		if ProofOf(m.ID).Reason == unknown.Reason {
			t.Errorf("%s: ProofOf does not name it", m.ID)
		}
	}
}

// A record of one run on real glasses changes the state of the capabilities that it shows, and of no others.
func TestProofOf_TurnsWithARecord(t *testing.T) {
	prove := func(r BenchRecord) Proof {
		t.Helper()
		records, err := readRecords(fstest.MapFS{"records/one.json": {Data: encoded(t, r)}, "records/README.md": {}})
		if err != nil || len(records) != 1 {
			t.Fatalf("got %d records (error %v), want one", len(records), err)
		}
		return proofOf("even_g1", records)
	}
	proof := prove(exampleRecord())
	for _, c := range []struct{ carrier, capability, want string }{
		{"bluez", CapabilityDisplay, ProofHardware}, {"bluez", CapabilityInput, ProofHardware},
		{"bluez", CapabilityMicrophone, ProofHardware}, {"bluez", CapabilityBattery, ProofHardware},
		{"bluez", CapabilityReconnect, ProofEmulated}, {"browser", CapabilityDisplay, ProofEmulated},
		{"", CapabilityDisplay, ProofHardware}, {"", CapabilityReconnect, ProofEmulated},
	} {
		if got := proof.Of(c.carrier, c.capability); got != c.want {
			t.Errorf("%s over %s: got %s, want %s", c.capability, c.carrier, got, c.want)
		}
	}
	for name, change := range map[string]func(*BenchRecord){
		"an emulator":   func(r *BenchRecord) { r.Against = AgainstEmulated },
		"nobody knows":  func(r *BenchRecord) { r.Against = AgainstUnknown },
		"another model": func(r *BenchRecord) { r.DeviceModel = "brilliant_frame" },
		"nothing measured": func(r *BenchRecord) {
			r.Pictures, r.Battery, r.Inputs, r.Microphone = BenchPictures{}, nil, BenchInputs{}, BenchMicrophone{}
		},
	} {
		r := exampleRecord()
		change(&r)
		if got := prove(r); got.State != ProofEmulated || len(got.recorded) > 0 {
			t.Errorf("%s: got %+v, want emulated", name, got)
		}
	}
	phone := exampleRecord()
	phone.DeviceModel = "even_g2"
	if got := proofOf("even_g2", []BenchRecord{phone}); got.State != ProofPhoneOnly {
		t.Errorf("a model without a driver: got %+v, want phone only", got)
	}
}

func TestOurRecords_CanBeRead(t *testing.T) {
	if _, err := ourRecords(); err != nil {
		t.Error(err)
	}
}

func TestParseBenchRecord_RefusesWhatItIsNot(t *testing.T) {
	for name, change := range map[string]func(*BenchRecord){
		"version": func(r *BenchRecord) { r.Record = 2 }, "model": func(r *BenchRecord) { r.DeviceModel = "g9" },
		"against": func(r *BenchRecord) { r.Against = "hardware" }, "date": func(r *BenchRecord) { r.At = time.Time{} },
		"carrier": func(r *BenchRecord) { r.Carrier = "" }, "pictures": func(r *BenchRecord) { r.Pictures.Asked = 1 },
	} {
		r := exampleRecord()
		change(&r)
		if _, err := ParseBenchRecord(encoded(t, r)); err == nil {
			t.Errorf("accepted a record with a wrong %s", name)
		}
	}
	if _, err := ParseBenchRecord([]byte(`{"record":1,"serial":"S110LAAL103842"}`)); err == nil {
		t.Error("accepted a field that is not part of a record")
	}
}

func FuzzParseBenchRecord(f *testing.F) {
	data, err := json.Marshal(exampleRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		if r, err := ParseBenchRecord(data); err == nil {
			r.Shown()
		}
	})
}
