package link

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/dbtest"
)

// startDrawing starts a code, with the given user codes drawn first. It returns every user code that was drawn.
func startDrawing(t *testing.T, s *Service, first ...string) (issued Issued, drawn []string, err error) {
	t.Helper()
	s.draw = func() string {
		code := newUserCode()
		if len(drawn) < len(first) {
			code = first[len(drawn)]
		}
		drawn = append(drawn, code)
		return code
	}
	issued, err = s.Start(t.Context(), Requester{Host: "maple"})
	return issued, drawn, err
}

// If a drawn code is taken, Start draws another.
func TestStart_DrawsTakenCodeAgain(t *testing.T) {
	s := newService(t, Settings{CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second})
	first, _, err := startDrawing(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for taken := range 5 {
		issued, drawn, err := startDrawing(t, s, slices.Repeat([]string{first.UserCode}, taken)...)
		if err != nil || len(drawn) != taken+1 || issued.UserCode != drawn[taken] {
			t.Fatalf("%d codes taken: got code %q of draws %q, error %v, want one more draw than taken codes", taken,
				issued.UserCode, drawn, err)
		}
		last, err := s.store.CodeByUser(t.Context(), s.userHash(issued.UserCode))
		if err != nil || last.State != Pending || last.Requester.Host != "maple" ||
			last.ExpiresAt.Sub(last.CreatedAt) != 10*time.Minute {
			t.Errorf("%d codes taken: stored %+v, error %v", taken, last, err)
		}
		if strings.Contains(last.UserHash+last.DeviceHash, issued.UserCode) || last.DeviceHash == issued.DeviceCode {
			t.Error("a code was stored in clear text")
		}
	}
}

func TestStart_GivesUpAfterCollisions(t *testing.T) {
	s := newService(t, Settings{CodeTTL: time.Minute})
	first, _, err := startDrawing(t, s)
	if err != nil {
		t.Fatal(err)
	}
	issued, drawn, err := startDrawing(t, s, slices.Repeat([]string{first.UserCode}, 1000)...)
	if err == nil || issued.DeviceCode != "" || len(drawn) != 5 {
		t.Errorf("every code taken: got error %v after %d draws, want an error after 5", err, len(drawn))
	}
	dbtest.Exec(t, s.store.DB, "DROP TABLE device_codes")
	if _, drawn, err := startDrawing(t, s); err == nil || len(drawn) != 1 {
		t.Errorf("broken database: got error %v after %d draws, want its error after 1", err, len(drawn))
	}
}

// The memory for recent polls is bounded for every pattern of polls.
func TestPace_MemoryIsBounded(t *testing.T) {
	s := newService(t, Settings{})
	for i := range 2*maxPaced + 10 {
		if _, err := s.pace(context.Background(), strconv.Itoa(i), 5*time.Second, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.polls) > maxPaced {
		t.Errorf("%d polls are remembered, want at most maxPaced", len(s.polls))
	}
}
