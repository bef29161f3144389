package link

import (
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/dbtest"
)

// Revoked is called with the account and the link, and only if a link was revoked.
func TestRevoked_ReceivesAccount(t *testing.T) {
	s := newService(t, Settings{})
	dbtest.AddAccount(t, s.store.DB, "ada")
	var told []string
	s.Revoked = func(accountID, linkID string) { told = append(told, accountID+" "+linkID) }
	for _, links := range []int{0, 1} {
		for i := range 2 * links {
			dbtest.Exec(t, s.store.DB, `INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
				VALUES ($1, 'ada', $1, '', '', '', '', 1)`, "link-"+string(rune('1'+i)))
		}
		told = nil
		_ = s.RevokeLink(t.Context(), "ada", "link-1", audit.Person())
		_, _ = s.RevokeAll(t.Context(), "ada", audit.Person())
		if links == 0 && told != nil || links == 1 && (len(told) != 2 || told[0] != "ada link-1" || told[1] != "ada ") {
			t.Errorf("%d links revoked: got calls %q, want one per revocation that had an effect", links, told)
		}
	}
}
