package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
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

// hourOf identifies one row of hourly sums.
type hourOf struct {
	account, project    string
	hour                int64
	model, kind, source string
}

// hourSums holds the sums of one row, in the order of usageSums.
type hourSums [10]int64

// count adds the calls of a group to their hourly sums and to the latest calls. Every group updates the sums in the
// same order, which avoids deadlocks.
func (g *creditGroup) count(ctx context.Context) error {
	sums := map[hourOf]*hourSums{}
	var calls []statement
	for _, op := range g.ops {
		if op.repeat || op.hold.ID != "" {
			continue
		}
		c, id := op.settle.Call, op.callID
		if id == "" {
			c.Account, c.Project, id = op.ended.account, op.ended.project, op.ended.id
		}
		project := g.ids[projectKey{c.Account, c.Project}]
		if project == "" {
			continue
		}
		hour := hourOf{c.Account, project, toMS(op.at.Truncate(time.Hour)), c.Model, c.Kind, c.Source}
		if sums[hour] == nil {
			sums[hour] = &hourSums{}
		}
		sums[hour].add(c, int64(op.charged))
		calls = append(calls, stmt(`INSERT INTO gateway_calls (id, account_id, app_id, at, model, kind, source, outcome,
				text_in, text_cached, text_out, estimated, duration_ms, micro_usd)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			id, c.Account, project, toMS(op.at), c.Model, c.Kind, c.Source, c.Outcome, c.TextIn, c.TextCached, c.TextOut,
			boolInt(c.Estimated), c.Duration.Milliseconds(), int64(op.charged)))
	}
	for _, h := range slices.SortedFunc(maps.Keys(sums), compareHours) {
		args := []any{h.account, h.project, h.hour, h.model, h.kind, h.source}
		for _, n := range sums[h] {
			args = append(args, n)
		}
		if err := g.tx.exec(ctx, stmt(`INSERT INTO gateway_usage (`+usageColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) `+addToUsage, args...)); err != nil {
			return err
		}
	}
	return g.tx.exec(ctx, calls...)
}

func compareHours(a, b hourOf) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.project, b.project), cmp.Compare(a.hour, b.hour),
		cmp.Compare(a.model, b.model), cmp.Compare(a.kind, b.kind), cmp.Compare(a.source, b.source))
}

func (s *hourSums) add(c credit.Call, charged int64) {
	var calls, failed, cancelled, refused int64
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
	for i, n := range []int64{calls, failed, cancelled, refused, int64(boolInt(c.Estimated)), c.TextIn, c.TextCached,
		c.TextOut, c.Duration.Milliseconds(), charged} {
		s[i] += n
	}
}

const ofUsageQuery = ` WHERE account_id = $1 AND ($2 = '' OR app_id = $2)`

// Usage calls row with the sums that match q, grouped by hour, project, model, kind and source.
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

// Refusals counts the refused calls that match q, by code.
func (s *Store) Refusals(ctx context.Context, q credit.UsageQuery) ([]credit.Refusal, error) {
	return queryAll(ctx, s.reads, func(row scanner) (r credit.Refusal, err error) {
		err = row.Scan(&r.Code, &r.Count, intoTime(&r.LastAt))
		return r, err
	}, `SELECT outcome, COUNT(*), MAX(at) FROM gateway_calls`+ofUsageQuery+` AND at >= $3 AND at < $4
			AND outcome NOT IN ('`+credit.OutcomeOK+`', '`+credit.OutcomeFailed+`', '`+credit.OutcomeCancelled+`')
		GROUP BY outcome ORDER BY COUNT(*) DESC, outcome`, q.AccountID, q.Project, toMS(q.From), toMS(q.To))
}

// mergeCredit moves the gateway's rows of one project to another, in the transaction that merges the projects and has
// locked the balance. Calls in flight continue, and count toward the other project. The merged settings are as strict
// as the stricter of the two: the lower of two caps applies, and own keys pay if they paid for either project.
func mergeCredit(ctx context.Context, tx *sql.Tx, accountID, from, into string) error {
	return moveRows(ctx, tx, accountID, from, into,
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
		`INSERT INTO gateway_settings (account_id, app_id, day_cap, month_cap, caps_version, key_source)
			SELECT account_id, CAST($3 AS TEXT), day_cap, month_cap, caps_version, key_source FROM gateway_settings
			WHERE account_id = $1 AND app_id = $2
			ON CONFLICT (account_id, app_id) DO UPDATE SET day_cap = `+lower("day_cap")+`, month_cap = `+lower("month_cap")+`,
				caps_version = gateway_settings.caps_version + 1,
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
