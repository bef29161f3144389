package credit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

const (
	usageColumns = `account_id, app_id, hour, model, kind, source, ` + UsageSums
	// UsageSums are the columns of gateway_usage that hold sums.
	UsageSums = `calls, failed, cancelled, refused, estimated, text_in, text_cached, text_out, duration_ms, micro_usd,
		audio_in, audio_cached, audio_out`
	addToUsage = `ON CONFLICT (account_id, app_id, hour, model, kind, source) DO UPDATE SET
		calls = gateway_usage.calls + excluded.calls, failed = gateway_usage.failed + excluded.failed,
		cancelled = gateway_usage.cancelled + excluded.cancelled, refused = gateway_usage.refused + excluded.refused,
		estimated = gateway_usage.estimated + excluded.estimated, text_in = gateway_usage.text_in + excluded.text_in,
		text_cached = gateway_usage.text_cached + excluded.text_cached,
		text_out = gateway_usage.text_out + excluded.text_out,
		duration_ms = gateway_usage.duration_ms + excluded.duration_ms,
		micro_usd = gateway_usage.micro_usd + excluded.micro_usd,
		audio_in = gateway_usage.audio_in + excluded.audio_in,
		audio_cached = gateway_usage.audio_cached + excluded.audio_cached,
		audio_out = gateway_usage.audio_out + excluded.audio_out`
)

// RecordCall counts a call that cost nothing. It ignores a call of an unknown project.
func (s *Store) RecordCall(ctx context.Context, id string, c Call, at time.Time) error {
	err := s.writeCall(ctx, c.Account, func(ctx context.Context, tx *sql.Tx) error {
		return s.record(ctx, tx, id, c, at)
	})
	if errors.Is(err, db.ErrNoProject) { // the account has just been deleted
		return nil
	}
	return err
}

// writeCall is like write. It tries again if a project has just been deleted or merged.
func (s *Store) writeCall(
	ctx context.Context, accountID string, f func(ctx context.Context, tx *sql.Tx) error,
) (err error) {
	for range 3 {
		if err = s.write(ctx, accountID, f); !errors.Is(err, db.ErrNoProject) {
			break
		}
	}
	return err
}

// record counts a call that cost nothing.
func (s *Store) record(ctx context.Context, tx *sql.Tx, id string, c Call, at time.Time) error {
	_, err := s.lockBalance(ctx, tx, c.Account, "")
	if errors.Is(err, ErrNoBook) {
		_, err = db.LockAccount(ctx, tx, c.Account)
	}
	if err != nil {
		return fmt.Errorf("lock account: %w", err)
	}
	counts, err := s.countCall(ctx, tx, id, c, 0, at)
	if err != nil {
		return err
	}
	return s.ExecUnordered(ctx, tx, "record call", counts...)
}

// countCall locks the call's project, and returns the statements that add the call to its hourly sums and to the latest
// calls. There are none if the project is unknown. The caller must hold the lock on the balance or the account.
func (s *Store) countCall(
	ctx context.Context, tx *sql.Tx, id string, c Call, charged int64, at time.Time,
) ([]db.Statement, error) {
	project, err := db.QueryValue[string](ctx, tx, `SELECT app_id FROM projects WHERE account_id = $1 AND app_id = COALESCE(
		(SELECT app_id FROM project_aliases WHERE account_id = $1 AND alias = $2), $2)`+s.ForKeyShare("projects"),
		c.Account, c.Project)
	if err != nil {
		return nil, db.ReplaceNoRows(err, nil)
	}
	var calls, failed, cancelled, refused int64
	switch c.Outcome {
	case OutcomeOK:
		calls = 1
	case OutcomeFailed:
		calls, failed = 1, 1
	case OutcomeCancelled:
		calls, cancelled = 1, 1
	default:
		refused = 1
	}
	estimated := db.BoolInt(c.Estimated)
	return []db.Statement{
		db.Stmt(`INSERT INTO gateway_usage (`+usageColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
				$17, $18, $19) `+addToUsage,
			c.Account, project, db.ToMS(at.Truncate(time.Hour)), c.Model, c.Kind, c.Source, calls, failed, cancelled, refused,
			estimated, c.TextIn, c.TextCached, c.TextOut, c.Duration.Milliseconds(), charged,
			c.AudioIn, c.AudioCached, c.AudioOut),
		db.Stmt(`INSERT INTO gateway_calls (id, account_id, app_id, at, model, kind, source, outcome,
				text_in, text_cached, text_out, estimated, duration_ms, micro_usd, audio_in, audio_cached, audio_out)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			id, c.Account, project, db.ToMS(at), c.Model, c.Kind, c.Source, c.Outcome, c.TextIn, c.TextCached, c.TextOut,
			estimated, c.Duration.Milliseconds(), charged, c.AudioIn, c.AudioCached, c.AudioOut),
	}, nil
}

const ofUsageQuery = ` WHERE account_id = $1 AND ($2 = '' OR app_id = $2)`

// Usage calls row with the sums that match q, grouped by hour, project, model, kind and source.
func (s *Store) Usage(ctx context.Context, q UsageQuery, row func(UsageRow) error) error {
	return db.Each(ctx, s, func(r db.Row) error {
		var u UsageRow
		err := r.Scan(&u.Project, &u.Model, &u.Kind, &u.Source, db.IntoTime(&u.Hour), &u.Calls, &u.Failed, &u.Cancelled,
			&u.Refused, &u.Estimated, &u.TextIn, &u.TextCached, &u.TextOut, db.IntoDuration(&u.Duration), &u.Charged,
			&u.AudioIn, &u.AudioCached, &u.AudioOut)
		if err != nil {
			return err
		}
		return row(u)
	},
		`SELECT app_id, model, kind, source, hour, `+UsageSums+` FROM gateway_usage`+ofUsageQuery+
			` AND hour >= $3 AND hour < $4 ORDER BY hour, app_id, model, kind, source`,
		q.AccountID, q.Project, db.ToMS(q.From), db.ToMS(q.To))
}

// Refusals counts the refused calls that q selects, by code, most frequent first.
func (s *Store) Refusals(ctx context.Context, q UsageQuery) ([]Refusal, error) {
	return db.All(ctx, s, func(row db.Row) (r Refusal, err error) {
		err = row.Scan(&r.Code, &r.Count, db.IntoTime(&r.LastAt))
		return r, err
	}, `SELECT outcome, COUNT(*), MAX(at) FROM gateway_calls`+ofUsageQuery+` AND at >= $3 AND at < $4
			AND outcome NOT IN ('`+OutcomeOK+`', '`+OutcomeFailed+`', '`+OutcomeCancelled+`')
		GROUP BY outcome ORDER BY COUNT(*) DESC, outcome`, q.AccountID, q.Project, db.ToMS(q.From), db.ToMS(q.To))
}

// Merge moves the gateway's rows of one project to another, in the transaction that merges the projects and has
// locked the balance. Calls in flight continue, and count toward the other project. The stricter of two settings
// applies: the lower cap, and own keys if they paid for either project.
func Merge(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	return db.ExecEach(ctx, tx, "move project", []any{accountID, from, into},
		`UPDATE credit_holds SET project = $3 WHERE account_id = $1 AND project = $2`,
		`INSERT INTO credit_spending (account_id, project, period, spent, held, key_spent)
			SELECT account_id, CAST($3 AS TEXT), period, spent, held, key_spent FROM credit_spending
			WHERE account_id = $1 AND project = $2
			ON CONFLICT (account_id, project, period) DO UPDATE SET spent = credit_spending.spent + excluded.spent,
				held = credit_spending.held + excluded.held, key_spent = credit_spending.key_spent + excluded.key_spent`,
		`INSERT INTO gateway_usage (`+usageColumns+`)
			SELECT account_id, CAST($3 AS TEXT), hour, model, kind, source, `+UsageSums+` FROM gateway_usage
			WHERE account_id = $1 AND app_id = $2 `+addToUsage,
		`UPDATE gateway_calls SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`INSERT INTO gateway_settings (account_id, app_id, day_cap, month_cap, caps_version, key_source,
				key_allowance, memory_days, memory_generation)
			SELECT account_id, CAST($3 AS TEXT), day_cap, month_cap, caps_version, key_source, key_allowance, memory_days,
				memory_generation FROM gateway_settings
			WHERE account_id = $1 AND app_id = $2
			ON CONFLICT (account_id, app_id) DO UPDATE SET day_cap = `+lower("day_cap")+`, month_cap = `+lower("month_cap")+`,
				key_allowance = `+lower("key_allowance")+`, caps_version = gateway_settings.caps_version + 1,
				memory_days = CASE WHEN COALESCE(excluded.memory_days, 30) < COALESCE(gateway_settings.memory_days, 30)
					THEN excluded.memory_days ELSE gateway_settings.memory_days END,
				memory_generation = CASE WHEN excluded.memory_generation <> 0
					THEN excluded.memory_generation ELSE gateway_settings.memory_generation END,
				key_source = CASE WHEN excluded.key_source = 'own' THEN 'own' ELSE gateway_settings.key_source END`,
		`DELETE FROM gateway_settings WHERE account_id = $1 AND app_id = $2 AND $2 <> $3`,
		`UPDATE local_servers SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM local_servers x WHERE x.account_id = $1 AND x.app_id = $3 AND x.id = local_servers.id)`,
		`DELETE FROM credit_spending WHERE account_id = $1 AND project = $2 AND $2 <> $3`,
		`DELETE FROM credit_notices WHERE account_id = $1 AND project = $2 AND $2 <> $3`)
}

// lower returns an expression for the lower cap of two rows of gateway_settings. NULL means no limit.
func lower(column string) string {
	return "CASE WHEN gateway_settings." + column + " IS NULL OR excluded." + column + " < gateway_settings." + column +
		" THEN excluded." + column + " ELSE gateway_settings." + column + " END"
}
