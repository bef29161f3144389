package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

const (
	usageColumns = `account_id, app_id, hour, model, kind, source, ` + usageSums
	usageSums    = `calls, failed, cancelled, refused, estimated, text_in, text_cached, text_out, duration_ms, micro_usd`
	addToUsage   = `ON CONFLICT (account_id, app_id, hour, model, kind, source) DO UPDATE SET
		calls = gateway_usage.calls + excluded.calls, failed = gateway_usage.failed + excluded.failed,
		cancelled = gateway_usage.cancelled + excluded.cancelled, refused = gateway_usage.refused + excluded.refused,
		estimated = gateway_usage.estimated + excluded.estimated, text_in = gateway_usage.text_in + excluded.text_in,
		text_cached = gateway_usage.text_cached + excluded.text_cached,
		text_out = gateway_usage.text_out + excluded.text_out,
		duration_ms = gateway_usage.duration_ms + excluded.duration_ms,
		micro_usd = gateway_usage.micro_usd + excluded.micro_usd`
)

// RecordCall counts a call without money. A call of an unknown project is not counted.
func (s *Store) RecordCall(ctx context.Context, id string, c credit.Call, at time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error { return countCall(ctx, tx, id, c, 0, at) })
	if errors.Is(err, projects.ErrNotFound) { // it was deleted meanwhile
		return nil
	}
	return err
}

// countCall adds a call to the sums of its hour and to the latest calls.
func countCall(ctx context.Context, tx *sql.Tx, id string, c credit.Call, charged int64, at time.Time) error {
	project, err := resolveProject(ctx, tx, c.Account, c.Project)
	if err != nil {
		return ignore(err, projects.ErrNotFound)
	}
	var calls, failed, cancelled, refused int
	switch c.Outcome {
	case credit.OutcomeOK:
		calls = 1
	case credit.OutcomeFailed:
		calls, failed = 1, 1
	case credit.OutcomeCancelled:
		calls, cancelled = 1, 1
	default:
		refused = 1
	}
	estimated, ms := boolInt(c.Estimated), c.Duration.Milliseconds()
	return execAll(ctx, tx, "count call",
		stmt(`INSERT INTO gateway_usage (`+usageColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) `+addToUsage,
			c.Account, project, toMS(at.Truncate(time.Hour)), c.Model, c.Kind, c.Source, calls, failed, cancelled, refused,
			estimated, c.TextIn, c.TextCached, c.TextOut, ms, charged),
		stmt(`INSERT INTO gateway_calls (id, account_id, app_id, at, model, kind, source, outcome, text_in, text_cached,
				text_out, estimated, duration_ms, micro_usd)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			id, c.Account, project, toMS(at), c.Model, c.Kind, c.Source, c.Outcome, c.TextIn, c.TextCached, c.TextOut,
			estimated, ms, charged))
}

// ignore returns nil for the error known.
func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

const ofUsageQuery = ` WHERE account_id = $1 AND ($2 = '' OR app_id = $2)`

// Usage calls row with the sums of q, by hour, project, model, kind and source.
func (s *Store) Usage(ctx context.Context, q credit.UsageQuery, row func(credit.UsageRow) error) error {
	return queryEach(ctx, s.reads, func(r scanner) error {
		var u credit.UsageRow
		err := r.Scan(&u.Project, &u.Model, &u.Kind, &u.Source, intoTime(&u.Hour), &u.Calls, &u.Failed, &u.Cancelled,
			&u.Refused, &u.Estimated, &u.TextIn, &u.TextCached, &u.TextOut, intoDuration(&u.Duration), &u.Charged)
		if err != nil {
			return err
		}
		return row(u)
	}, `SELECT app_id, model, kind, source, hour, `+usageSums+` FROM gateway_usage`+ofUsageQuery+` AND hour >= $3 AND hour < $4
		ORDER BY hour, app_id, model, kind, source`, q.AccountID, q.Project, toMS(q.From), toMS(q.To))
}

// Refusals counts the refused calls of q by code.
func (s *Store) Refusals(ctx context.Context, q credit.UsageQuery) ([]credit.Refusal, error) {
	return queryAll(ctx, s.reads, func(row scanner) (r credit.Refusal, err error) {
		err = row.Scan(&r.Code, &r.Count, intoTime(&r.LastAt))
		return r, err
	}, `SELECT outcome, COUNT(*), MAX(at) FROM gateway_calls`+ofUsageQuery+` AND at >= $3 AND at < $4
			AND outcome NOT IN ('`+credit.OutcomeOK+`', '`+credit.OutcomeFailed+`', '`+credit.OutcomeCancelled+`')
		GROUP BY outcome ORDER BY COUNT(*) DESC, outcome`, q.AccountID, q.Project, toMS(q.From), toMS(q.To))
}

// mergeCredit moves the gateway's rows of one project to another, in the transaction that merges the projects. Calls in
// flight continue, and count in the other.
func mergeCredit(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	return moveRows(ctx, tx, accountID, from, into,
		`UPDATE credit_balances SET held = held WHERE account_id = $1 AND $2 <> $3`, // no hold is made meanwhile
		`UPDATE credit_holds SET project = $3 WHERE account_id = $1 AND project = $2`,
		`INSERT INTO credit_spending (account_id, project, period, spent, held)
			SELECT account_id, CAST($3 AS TEXT), period, spent, held FROM credit_spending
			WHERE account_id = $1 AND project = $2
			ON CONFLICT (account_id, project, period) DO UPDATE SET spent = credit_spending.spent + excluded.spent,
				held = credit_spending.held + excluded.held`,
		`INSERT INTO gateway_usage (`+usageColumns+`)
			SELECT account_id, CAST($3 AS TEXT), hour, model, kind, source, `+usageSums+` FROM gateway_usage
			WHERE account_id = $1 AND app_id = $2 `+addToUsage,
		`UPDATE gateway_calls SET app_id = $3 WHERE account_id = $1 AND app_id = $2`,
		`UPDATE gateway_settings SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM gateway_settings x WHERE x.account_id = $1 AND x.app_id = $3)`,
		`UPDATE local_servers SET app_id = $3 WHERE account_id = $1 AND app_id = $2 AND NOT EXISTS
			(SELECT 1 FROM local_servers x WHERE x.account_id = $1 AND x.app_id = $3 AND x.id = local_servers.id)`,
		`DELETE FROM credit_spending WHERE account_id = $1 AND project = $2 AND $2 <> $3`,
		`DELETE FROM credit_notices WHERE account_id = $1 AND project = $2 AND $2 <> $3`)
}
