package sqlstore_test

import (
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestAssistant(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunAssistant(t, func(t *testing.T) storetest.AssistantStore {
			s := openStore(t, database(t))
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}
