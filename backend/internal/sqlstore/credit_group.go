package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
)

// creditGroup writes holds and settlements in one transaction, with the same result as one after another: first all
// settlements, which release money, then the holds in order of arrival. It locks the account balances, always in the
// same order, and then the projects. It decides on each hold from the values that it read under the lock and its own
// changes to them.
type creditGroup struct {
	s   *Store
	tx  stepper
	ops []*creditOp

	purses   map[string]*purse
	caps     map[projectKey]*periodCaps // by project of a new hold
	ids      map[projectKey]string      // project of each call: "" if unknown; differs from the given ID for an alias
	spending map[periodKey]spending     // by project or account with a cap
	held     map[dayKey]int64           // amounts of new holds
}

// purse is a locked balance.
type purse struct {
	book         string
	posted, held int64
	caps         periodCaps
	// addPosted and addHeld are the group's changes to posted and held.
	addPosted, addHeld int64
}

// periodCaps limit the spending of a day and a month; NULL means no limit.
type periodCaps struct{ day, month sql.NullInt64 }

func (c periodCaps) any() bool { return c.day.Valid || c.month.Valid }

type projectKey struct{ account, project string }

func compareProjectKeys(a, b projectKey) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.project, b.project))
}

type periodKey struct{ account, project, period string }

// spending is the amount that counts towards a cap.
type spending struct{ spent, held int64 }

// dayKey identifies a project on a day.
type dayKey struct{ account, project, day string }

func compareDays(a, b dayKey) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.project, b.project), cmp.Compare(a.day, b.day))
}

func (d dayKey) month() string { return d.day[:len("2006-01")] }

func newCreditGroup(s *Store, tx stepper) *creditGroup {
	return &creditGroup{s: s, tx: tx, purses: map[string]*purse{}, caps: map[projectKey]*periodCaps{},
		ids: map[projectKey]string{}, spending: map[periodKey]spending{}, held: map[dayKey]int64{}}
}

func (g *creditGroup) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		g.lockAndEnd, g.endAgain, g.readProjects, g.giveBack, g.readSpending, g.admitAll, g.changeSums, g.book, g.count,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settlements returns the settlements of holds for which f returns true.
func (g *creditGroup) settlements(f func(op *creditOp) bool) (some []*creditOp) {
	for _, op := range g.ops {
		if op.settle.HoldID != "" && f(op) {
			some = append(some, op)
		}
	}
	return some
}

// lockAndEnd locks and reads the balances in account order, and ends the holds of the settlements that are still open.
// Every transaction that changes holds or sums of an account locks its balance first, which avoids deadlocks.
func (g *creditGroup) lockAndEnd(ctx context.Context) error {
	for _, op := range g.ops {
		if account := op.account(); op.callID == "" && account != "" {
			g.purses[account] = nil
		}
	}
	accounts := slices.Sorted(maps.Keys(g.purses))
	statements := make([]statement, 0, len(accounts)+len(g.ops))
	for _, id := range accounts {
		statements = append(statements, g.lockBalance(id))
	}
	ops := g.settlements(func(*creditOp) bool { return true })
	for _, op := range ops {
		charge := int64(op.settle.Charge)
		if op.settle.Carried {
			charge = 0
		}
		statements = append(statements, stmt(`UPDATE credit_holds
			SET state = 'settled', charged = CASE WHEN amount < $2 THEN amount ELSE $2 END
			WHERE id = $1 AND state = 'open' RETURNING `+endedHoldColumns, op.settle.HoldID, charge))
	}
	return g.query(ctx, "settle hold", func(i int, r scanner) (err error) {
		if i < len(accounts) {
			return g.addPurse(accounts[i], r)
		}
		op := ops[i-len(accounts)]
		op.ended, err = scanEndedHold(r)
		op.charged = credit.Amount(op.ended.charged)
		return err
	}, statements)
}

func (g *creditGroup) lockBalance(accountID string) statement {
	return stmt(`SELECT book, posted, held, day_cap, month_cap FROM credit_balances
		WHERE account_id = $1`+g.s.forUpdate("credit_balances"), accountID)
}

func (g *creditGroup) addPurse(accountID string, r scanner) error {
	p := &purse{}
	g.purses[accountID] = p
	return r.Scan(&p.book, &p.posted, &p.held, &p.caps.day, &p.caps.month)
}

// endAgain handles settlements whose hold was not open: a repeated settlement has no effect, and the operator pays for
// a call whose hold was already released.
func (g *creditGroup) endAgain(ctx context.Context) error {
	ops := g.settlements(func(op *creditOp) bool { return op.ended.id == "" })
	var statements []statement
	for _, op := range ops {
		op.repeat, op.refused = true, credit.ErrNoHold
		statements = append(statements,
			stmt(`UPDATE credit_holds SET state = 'late' WHERE id = $1 AND state = 'expired' RETURNING `+endedHoldColumns,
				op.settle.HoldID),
			stmt(`SELECT `+endedHoldColumns+` FROM credit_holds WHERE id = $1`, op.settle.HoldID))
	}
	return g.query(ctx, "settle late", func(i int, r scanner) error {
		op := ops[i/2]
		h, err := scanEndedHold(r)
		op.refused = nil
		if i%2 == 0 {
			op.ended, op.late, op.repeat = h, true, false
		} else {
			op.charged = credit.Amount(h.charged)
		}
		return err
	}, statements)
}

// readProjects reads the projects of the group, and locks the ones whose calls are counted. It also locks the balances
// of holds whose settlement did not name the account.
func (g *creditGroup) readProjects(ctx context.Context) error {
	unnamed := map[string]bool{}
	for _, op := range g.ops {
		switch {
		case op.hold.ID != "":
			g.caps[projectKey{op.hold.Account, op.hold.Project}] = &periodCaps{}
		case op.callID != "":
			g.ids[projectKey{op.settle.Call.Account, op.settle.Call.Project}] = ""
		case op.ended.id != "":
			if _, locked := g.purses[op.ended.account]; !locked {
				unnamed[op.ended.account] = true
			}
			g.ids[projectKey{op.ended.account, op.ended.project}] = ""
		}
	}
	var statements []statement
	var rows []func(r scanner) error
	add := func(row func(r scanner) error, s statement) {
		statements, rows = append(statements, s), append(rows, row)
	}
	for _, id := range slices.Sorted(maps.Keys(unnamed)) {
		add(func(r scanner) error { return g.addPurse(id, r) }, g.lockBalance(id))
	}
	for k, c := range g.caps {
		add(func(r scanner) error { return r.Scan(&c.day, &c.month) }, stmt(`SELECT day_cap, month_cap FROM gateway_settings
			WHERE account_id = $1 AND app_id = $2`, k.account, k.project))
	}
	for _, k := range slices.SortedFunc(maps.Keys(g.ids), compareProjectKeys) {
		if g.s.engine == "postgres" {
			// If the project is being merged, this waits until the next statement can see the alias.
			add(func(scanner) error { return nil }, stmt(`SELECT 1 FROM projects WHERE account_id = $1 AND (app_id = $2
				OR app_id = (SELECT app_id FROM project_aliases WHERE account_id = $1 AND alias = $2)) FOR KEY SHARE`,
				k.account, k.project))
		}
		add(func(r scanner) (err error) {
			g.ids[k], err = value[string](r)
			return err
		}, stmt(projectIDQuery, k.account, k.project))
	}
	return g.query(ctx, "lock projects", func(i int, r scanner) error { return rows[i](r) }, statements)
}

// giveBack subtracts ended holds from the held amounts, and their charges from the balances.
func (g *creditGroup) giveBack(ctx context.Context) error {
	sums := map[dayKey]*endedHold{}
	for _, op := range g.settlements(func(op *creditOp) bool { return op.ended.id != "" && !op.late }) {
		h := op.ended
		p := g.purses[h.account]
		if p == nil {
			return fmt.Errorf("return hold: %w", sql.ErrNoRows)
		}
		p.change(-h.charged, -h.amount)
		day := dayKey{h.account, h.project, h.day}
		if sums[day] == nil {
			sums[day] = &endedHold{account: h.account, project: h.project, day: h.day}
		}
		sums[day].amount += h.amount
		sums[day].charged += h.charged
	}
	var statements []statement
	for _, day := range slices.SortedFunc(maps.Keys(sums), compareDays) {
		statements = append(statements, sums[day].subtractSpending())
	}
	return g.tx.exec(ctx, statements...)
}

func (p *purse) change(posted, held int64) {
	p.posted, p.held = p.posted+posted, p.held+held
	p.addPosted, p.addHeld = p.addPosted+posted, p.addHeld+held
}

// readSpending reads the spent and held amounts of projects and accounts with a cap, for the days of the new holds.
func (g *creditGroup) readSpending(ctx context.Context) error {
	days := map[dayKey]bool{}
	for _, op := range g.ops {
		h := op.hold
		p := g.purses[h.Account]
		if h.ID != "" && p != nil && (p.caps.any() || g.caps[projectKey{h.Account, h.Project}].any()) {
			days[op.day()] = true
		}
	}
	all := slices.Collect(maps.Keys(days))
	statements := make([]statement, len(all))
	for i, d := range all {
		statements[i] = stmt(`SELECT project, period, spent, held FROM credit_spending WHERE account_id = $1
			AND (project = '' OR project = $2) AND (period = $3 OR period = $4)`, d.account, d.project, d.day, d.month())
	}
	return g.query(ctx, "read spending", func(i int, r scanner) error {
		k := periodKey{account: all[i].account}
		var sum spending
		err := r.Scan(&k.project, &k.period, &sum.spent, &sum.held)
		g.spending[k] = sum
		return err
	}, statements)
}

// day returns the day of a hold.
func (op *creditOp) day() dayKey {
	day, _ := credit.Periods(op.at)
	return dayKey{op.hold.Account, op.hold.Project, day}
}

// admitAll inserts the holds that the balances and caps allow.
func (g *creditGroup) admitAll(ctx context.Context) error {
	var statements []statement
	for _, op := range g.ops {
		h := op.hold
		if h.ID == "" {
			continue
		}
		if op.refused = g.admit(op); op.refused != nil {
			continue
		}
		day := op.day()
		g.purses[h.Account].change(0, int64(h.Amount))
		g.held[day] += int64(h.Amount)
		for _, k := range day.periods() {
			sum := g.spending[k]
			sum.held += int64(h.Amount)
			g.spending[k] = sum
		}
		statements = append(statements, stmt(`INSERT INTO credit_holds
				(id, account_id, project, amount, charged, state, day, created_at, lease_until)
			VALUES ($1, $2, $3, $4, 0, 'open', $5, $6, $7)`,
			h.ID, h.Account, h.Project, int64(h.Amount), day.day, toMS(op.at), toMS(h.LeaseUntil)))
	}
	return g.tx.exec(ctx, statements...)
}

// periods returns the sums toward which a hold of this day counts.
func (d dayKey) periods() []periodKey {
	all := []periodKey{{d.account, "", d.day}, {d.account, "", d.month()}}
	if d.project != "" {
		all = append(all, periodKey{d.account, d.project, d.day}, periodKey{d.account, d.project, d.month()})
	}
	return all
}

// admit returns the reason to refuse a hold, or nil. If a cap would refuse the hold even without the calls in flight,
// it reports the cap rather than any other reason.
func (g *creditGroup) admit(op *creditOp) (passing error) {
	h := op.hold
	p := g.purses[h.Account]
	if p == nil {
		return credit.ErrNoBook
	}
	if refused := refusal(h.Amount, p.posted, p.held); refused != nil {
		return refused
	}
	own := g.caps[projectKey{h.Account, h.Project}]
	day, month := credit.Periods(op.at)
	dayEnds, monthEnds := credit.Resets(op.at)
	for _, c := range []struct { // in the order in which they are reported to apps
		limit sql.NullInt64
		of    string
		cap   string
		sum   periodKey
		ends  time.Time
	}{
		{own.day, credit.OfProject, credit.CapDay, periodKey{h.Account, h.Project, day}, dayEnds},
		{own.month, credit.OfProject, credit.CapMonth, periodKey{h.Account, h.Project, month}, monthEnds},
		{p.caps.day, credit.OfAccount, credit.CapDay, periodKey{h.Account, "", day}, dayEnds},
		{p.caps.month, credit.OfAccount, credit.CapMonth, periodKey{h.Account, "", month}, monthEnds},
	} {
		sum := g.spending[c.sum]
		limit, spent, held := credit.Amount(c.limit.Int64), credit.Amount(sum.spent), credit.Amount(sum.held)
		switch {
		case !c.limit.Valid || spent+held+h.Amount <= limit:
		case spent+h.Amount > limit:
			return &credit.CapReached{Cap: c.cap, Of: c.of, Limit: limit, Used: spent + held, ResetsAt: c.ends}
		case passing == nil:
			passing = &credit.Reserved{Needed: h.Amount, Available: max(limit-spent-held, 0), Held: held, Cap: c.cap, Of: c.of}
		}
	}
	return passing
}

// changeSums applies the group's changes to balances and spending.
func (g *creditGroup) changeSums(ctx context.Context) error {
	var statements []statement
	for _, id := range slices.Sorted(maps.Keys(g.purses)) {
		if p := g.purses[id]; p != nil && (p.addPosted != 0 || p.addHeld != 0) {
			statements = append(statements, stmt(`UPDATE credit_balances SET held = held + $2, posted = posted + $3
				WHERE account_id = $1`, id, p.addHeld, p.addPosted))
		}
	}
	for _, day := range slices.SortedFunc(maps.Keys(g.held), compareDays) {
		statements = append(statements, day.addSpending(g.held[day]))
	}
	return g.tx.exec(ctx, statements...)
}

// book inserts the transfers of the settlements.
func (g *creditGroup) book(ctx context.Context) error {
	var transfers []statement
	add := func(op *creditOp, kind, debit string, amount int64) {
		transfers = append(transfers, transferOf(kind+op.ended.id, debit, credit.BookUsed, amount, op.at, "")...)
	}
	for _, op := range g.settlements(func(op *creditOp) bool { return op.ended.id != "" }) {
		charge := int64(op.settle.Charge)
		switch {
		case op.late:
			add(op, "late:", credit.BookOperator, charge)
			continue
		case op.settle.Carried:
			add(op, "carried:", credit.BookOperator, charge)
			continue
		}
		add(op, "call:", g.purses[op.ended.account].book, op.ended.charged)
		add(op, "short:", credit.BookOperator, charge-op.ended.charged)
	}
	return g.tx.exec(ctx, transfers...)
}

// query runs statements and reads their rows.
func (g *creditGroup) query(ctx context.Context, what string, row func(int, scanner) error, all []statement) error {
	if len(all) == 0 {
		return nil
	}
	if err := g.tx.query(ctx, row, all...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
