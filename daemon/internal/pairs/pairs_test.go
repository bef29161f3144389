package pairs

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses/uncleared"
)

func open(dir string) *Store { return Open(dir, time.Now, slog.New(slog.DiscardHandler)) }

func TestStore_RemembersTheLastPairOfAModel(t *testing.T) {
	dir := t.TempDir()
	s := open(dir)
	old := backend.Pair{Name: "Even G1_27", Addresses: map[string]string{"left": "AA"},
		PairPanel: backend.PairPanel{Inverted: true, Rows: 135}}
	for _, p := range []backend.Pair{old, {Name: "Even G1_31"}} {
		if err := s.Use("even_g1", p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Use("brilliant_frame", backend.Pair{Name: "Frame AB"}); err != nil {
		t.Fatal(err)
	}
	s = open(dir)
	if got := s.Last("even_g1").Name; got != "Even G1_31" {
		t.Errorf("last even_g1: got %q, want Even G1_31", got)
	}
	if got := s.Named("even_g1", "even g1_27"); got.Addresses["left"] != "AA" || !got.Inverted || got.Rows != 135 {
		t.Errorf("Even G1_27: got %+v, want %+v", got, old)
	}
	if got := s.Named("even_g1", "Even G1_99"); got.Name != "Even G1_99" || got.Addresses != nil {
		t.Errorf("an unknown pair: got %+v, want only its name", got)
	}
	if got := s.Last("brilliant_halo").Name; got != "" {
		t.Errorf("last brilliant_halo: got %q, want none", got)
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("glasses.json: got %v, %v, want mode 0600", info.Mode(), err)
	}
}

// A pair that was connected through a page keeps the addresses at which BlueZ finds it without a search.
func TestStore_KeepsAddressesThatAPageDoesNotKnow(t *testing.T) {
	s := open(t.TempDir())
	for _, addresses := range []map[string]string{{"left": "AA"}, nil} {
		if err := s.Use("even_g1", backend.Pair{Name: "Even G1_27", Addresses: addresses}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Last("even_g1").Addresses["left"]; got != "AA" {
		t.Errorf("got the address %q, want AA", got)
	}
}

func TestStore_ForgetsTheOldest(t *testing.T) {
	s := open(t.TempDir())
	for n := range Max + 3 {
		if err := s.Use("even_g1", backend.Pair{Name: fmt.Sprint("pair ", n)}); err != nil {
			t.Fatal(err)
		}
	}
	list := s.List()
	if len(list) != Max || list[0].Name != fmt.Sprint("pair ", Max+2) {
		t.Errorf("got %d pairs, the first %q, want %d", len(list), list[0].Name, Max)
	}
}

func TestOpen_SetsAnUnusableFileAside(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(`{"pairs":[`), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(open(dir).List()); n != 0 {
		t.Errorf("got %d pairs, want none", n)
	}
	aside, err := filepath.Glob(filepath.Join(dir, fileName+".corrupt-*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("got the files %v, want one copy of the unusable file", aside)
	}
}

func TestStore_RemembersThePanel(t *testing.T) {
	dir := t.TempDir()
	s := open(dir)
	panel := backend.PairPanel{Inverted: true, Rows: 135, IsChecked: true}
	if err := s.SetPanel("even_g1", "Even G1_27", panel); err == nil {
		t.Error("stored the panel of a pair that is not remembered")
	}
	if err := s.Use("even_g1", backend.Pair{Name: "Even G1_27"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPanel("even_g1", "even g1_27", panel); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPanel("even_g1", "Even G1_27", backend.PairPanel{Rows: -1}); err == nil {
		t.Error("stored a panel with -1 rows")
	}
	if err := s.Use("even_g1", backend.Pair{Name: "Even G1_27"}); err != nil { // the adapter had fewer facts
		t.Fatal(err)
	}
	if got := open(dir).List(); len(got) != 1 || !got[0].Inverted || got[0].Rows != 135 || !got[0].IsChecked {
		t.Errorf("got %+v, want one pair with the panel that was checked", got)
	}
}

// The adapter's mark means that a panel may still show a picture. Forgetting the pair also discards the mark.
func TestStore_KnowsWhichPairsAreNotCleared(t *testing.T) {
	dir := t.TempDir()
	s := open(dir)
	for _, name := range []string{"Even G1_27", "Even G1_31"} {
		if err := s.Use("even_g1", backend.Pair{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	marked := uncleared.Pair{DeviceModel: "even_g1", Name: "Even G1_27"}
	if err := uncleared.Mark(dir, marked); err != nil {
		t.Fatal(err)
	}
	for _, k := range s.List() {
		if want := k.Name == marked.Name; k.Uncleared != want || s.IsUncleared("even_g1", k.Name) != want {
			t.Errorf("%s: got uncleared %v, want %v", k.Name, k.Uncleared, want)
		}
	}
	if err := s.Forget("even g1_27"); err != nil || uncleared.Has(dir, marked) {
		t.Errorf("the mark of a forgotten pair stays (error %v)", err)
	}
}

func TestStore_ForgetsAPair(t *testing.T) {
	dir := t.TempDir()
	s := open(dir)
	for _, name := range []string{"Even G1_27", "Even G1_31"} {
		if err := s.Use("even_g1", backend.Pair{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Forget("even g1_27"); err != nil {
		t.Fatal(err)
	}
	if got := open(dir).List(); len(got) != 1 || got[0].Name != "Even G1_31" {
		t.Errorf("got %+v, want only Even G1_31", got)
	}
	if err := s.Forget("Even G1_27"); err == nil {
		t.Error("forgot a pair twice")
	}
}
