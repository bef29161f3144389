package link

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
)

// revoking is a store that revokes the given number of links.
type revoking struct {
	TokenStores
	n int
}

func (r revoking) RevokeLinks(context.Context, string, time.Time, audit.Entry, audit.Trace) (int, error) {
	return r.n, nil
}

// Revoked is called with the account and the link, and only if a link was revoked.
func TestRevoked_ReceivesAccount(t *testing.T) {
	for _, n := range []int{0, 1} {
		var told []string
		s := NewService(nil, revoking{n: n}, secret.NewHasher(make([]byte, 32)), Settings{}, slog.New(slog.DiscardHandler),
			nil)
		s.Revoked = func(accountID, linkID string) { told = append(told, accountID+" "+linkID) }
		_ = s.RevokeLink(t.Context(), "ada", "link-1", audit.Person())
		_, _ = s.RevokeAll(t.Context(), "ada", audit.Person())
		if n == 0 && told != nil || n == 1 && (len(told) != 2 || told[0] != "ada link-1" || told[1] != "ada ") {
			t.Errorf("%d links revoked: got calls %q, want one per revocation that had an effect", n, told)
		}
	}
}
