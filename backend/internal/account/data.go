package account

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Export writes everything that the backend stores about the account, except secrets, as one JSON object with a list
// of rows per section. It streams, so memory use does not grow with the size of the export.
func (s *Service) Export(ctx context.Context, accountID string, to io.Writer, by audit.Actor) error {
	if _, err := s.ByID(ctx, accountID); err != nil {
		return err
	}
	if err := s.audit.InsertAudit(ctx, s.entry(accountID, by, "account.exported", "exported the account")); err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "{\n \"exportedAt\": %q", s.now().UTC().Format(time.RFC3339))
	section := ""
	err := s.store.ExportAccount(ctx, accountID, func(name string, fields map[string]any) error {
		row, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("export %s: %w", name, err)
		}
		before := ","
		if name != section {
			before = fmt.Sprintf(",\n %q: [", name)
			if section != "" {
				before = "\n ]" + before
			}
			section = name
		}
		_, err = fmt.Fprintf(w, "%s\n  %s", before, row)
		return err
	})
	if err != nil {
		return err
	}
	if section != "" {
		fmt.Fprint(w, "\n ]")
	}
	fmt.Fprint(w, "\n}\n")
	return w.Flush()
}

// Delete deletes the account and everything that belongs to it, including browser sessions and links. It returns
// ErrNotFound for an unknown account.
func (s *Service) Delete(ctx context.Context, accountID string, by audit.Actor) error {
	a, err := s.store.AccountByID(ctx, accountID)
	if err != nil {
		return err
	}
	if err := s.store.DeleteAccount(ctx, accountID, s.now()); err != nil {
		return err
	}
	s.ended(accountID)
	s.log.InfoContext(ctx, "account deleted", "account", accountID, "by", by.Kind)
	s.notice(ctx, deletedMail(a))
	return nil
}
