package sqlstore_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/sqlstore"
)

// The first server's key is the database's, also when several start at once.
func TestFirstKeyIsKept(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		s := openStore(t, database(t))
		t.Cleanup(func() { s.Close() })
		if err := s.CheckKey(t.Context(), "any"); err != nil {
			t.Errorf("never served: %v", err)
		}
		var wg sync.WaitGroup
		errs := make(chan error, 10)
		for i := range cap(errs) {
			wg.Go(func() { errs <- s.KeepKey(t.Context(), []string{"one", "two"}[i%2]) })
		}
		wg.Wait()
		close(errs)
		kept := 0
		for err := range errs {
			if err == nil {
				kept++
			} else if !errors.Is(err, sqlstore.ErrOtherKey) {
				t.Error(err)
			}
		}
		if kept != 5 {
			t.Errorf("%d of five servers with the same key started", kept)
		}
		if changed, err := s.ReplaceKey(t.Context(), "three"); err != nil || !changed {
			t.Errorf("%v, %v", changed, err)
		}
		if changed, err := s.ReplaceKey(t.Context(), "three"); err != nil || changed {
			t.Errorf("again: %v, %v", changed, err)
		}
		if err := s.CheckKey(t.Context(), "one"); !errors.Is(err, sqlstore.ErrOtherKey) {
			t.Errorf("the former key: %v", err)
		}
		if err := s.KeepKey(t.Context(), "three"); err != nil {
			t.Error(err)
		}
	})
}
