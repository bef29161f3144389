package web

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/proto/backendapi"
)

const (
	creditPath      = "/account/credit"
	listedTransfers = 50
	lastPage        = 100_000
)

// total is a number at the top of a page.
type total struct{ Name, N string }

// creditPage is the data of the template "dashboard_credit".
type creditPage struct {
	formErrors
	Done      *notice
	Notices   []string // about limits that are almost used up
	Credit    credit.Account
	Totals    []total
	Free      string
	Caps      capsForm
	Transfers []transferRow
	Newer     string // URL; "" if these are the newest
	Older     string // URL; "" if these are the oldest
}

type transferRow struct {
	At                 shownTime
	What, Note, Amount string
	In                 bool // the account received the amount
}

func (w *Web) credit(c *call) error { return w.showCredit(c, formErrors{}, nil) }

// showCredit renders the page. entered are the caps from a posted form, or nil.
func (w *Web) showCredit(c *call, f formErrors, entered *capsForm) error {
	own, err := w.Dashboard.Credit.Account(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.URL.Query().Get("page"))
	if err != nil || n < 1 || n > lastPage {
		n = 1
	}
	list, err := w.Dashboard.Credit.Transfers(c.Context(), c.account.ID, (n-1)*listedTransfers, listedTransfers+1)
	if err != nil {
		return err
	}
	page := creditPage{
		formErrors: f, Done: c.notice(), Credit: own, Free: freeText(own.Free),
		Caps: newCapsForm(creditPath, own.Caps, own.Day, own.Month, entered),
		Totals: []total{
			{"Available", dollars(own.Available())}, {"Reserved by calls in flight", dollars(own.Held)},
			{"Spent today", dollars(own.Day.Spent)}, {"Spent this month", dollars(own.Month.Spent)},
		},
	}
	if n > 1 {
		page.Newer = fmt.Sprintf("%s?page=%d#transfers", creditPath, n-1)
	}
	if len(list) > listedTransfers {
		list, page.Older = list[:listedTransfers], fmt.Sprintf("%s?page=%d#transfers", creditPath, n+1)
	}
	if page.Notices, err = w.spendingNotices(c, ""); err != nil {
		return err
	}
	for _, t := range list {
		page.Transfers = append(page.Transfers, newTransferRow(t))
	}
	return w.render(c, page.status(), "dashboard_credit", page)
}

func freeText(a credit.Amount) string {
	if a == 0 {
		return "none was granted"
	}
	return dollars(a) + ", granted once"
}

func dollars(a credit.Amount) string { return backendapi.Dollars(int64(a)) }

func newTransferRow(t credit.Transfer) transferRow {
	kind, reference, _ := strings.Cut(t.ID, ":")
	row := transferRow{At: showTime(t.At), In: t.Credit == "", Amount: "−" + dollars(t.Amount)}
	if row.In {
		row.Amount = "+" + dollars(t.Amount)
	}
	switch {
	case kind == "free":
		row.What = "Free credit"
	case kind == "call":
		row.What = "Call to a model"
	case kind == "reference" && row.In:
		row.What, row.Note = "Paid in", reference
	case kind == "reference":
		row.What, row.Note = "Taken back", reference
	default:
		row.What = "Transfer"
	}
	if t.Note != "" {
		row.Note = strings.TrimPrefix(row.Note+" · "+t.Note, " · ")
	}
	return row
}

// capsForm is the data of the template "caps".
type capsForm struct {
	Action    string
	Lines     []capLine
	Now, Then string // the maximum cost of a month, as saved and as entered; Then is "" if nothing was entered
	Version   int64  // version of the caps when they were read
	// values as entered; keys is for projects
	day, month, keys string
}

// capLine is one cap in a capsForm. None describes an empty field.
type capLine struct{ ID, Label, Value, Spent, None string }

const noCaps = "the account's whole credit"

func newCapsForm(action string, saved credit.Caps, day, month credit.Spent, entered *capsForm) capsForm {
	form := capsForm{Action: action + "/caps", Version: saved.Version,
		day: capValue(saved.Day), month: capValue(saved.Month),
		Now: mostOfMonth(saved)}
	if entered != nil {
		form.day, form.month, form.Then = entered.day, entered.month, entered.Then
	}
	form.Lines = []capLine{
		{"cap-day", "A day", form.day, spentText(day), "no cap"},
		{"cap-month", "A month", form.month, spentText(month), "no cap"},
	}
	return form
}

// withKeys adds the daily allowance of project keys to a project's form.
func (f capsForm) withKeys(p credit.Project, entered *capsForm) capsForm {
	f.keys = capValue(p.Caps.Keys)
	if entered != nil {
		f.keys = entered.keys
	}
	f.Lines = append(f.Lines, capLine{"cap-keys", "A day, by calls with a project key alone", f.keys, spentText(p.Keys),
		"no limit for them"})
	return f
}

func capValue(c *credit.Amount) string {
	if c == nil {
		return ""
	}
	return c.String()
}

func spentText(s credit.Spent) string {
	text := dollars(s.Spent) + " spent"
	if s.Held > 0 {
		text += ", " + dollars(s.Held) + " reserved"
	}
	return text
}

// mostOfMonth returns the maximum that calls can cost in a month.
func mostOfMonth(c credit.Caps) string {
	const days = 31
	switch {
	case c.Day == nil && c.Month == nil:
		return noCaps
	case c.Day == nil || c.Month != nil && *c.Month <= *c.Day*days:
		return dollars(*c.Month)
	}
	return dollars(*c.Day * days)
}

// readCaps reads the posted caps: dollars, or an empty field for no cap.
func readCaps(c *call, f *formErrors) (caps credit.Caps, entered capsForm) {
	read := func(id string, into **credit.Amount) string {
		text := strings.TrimSpace(c.PostFormValue(id))
		if plain := strings.TrimPrefix(text, "$"); plain != "" {
			amount, err := credit.ParseAmount(plain)
			if err != nil {
				f.add(id, "Enter dollars, such as 5 or 0.50, or leave it empty for no cap.")
			}
			*into = &amount
		}
		return text
	}
	entered.day, entered.month = read("cap-day", &caps.Day), read("cap-month", &caps.Month)
	if c.project.ID != "" {
		entered.keys = read("cap-keys", &caps.Keys)
	}
	if !f.Failed() {
		entered.Then = mostOfMonth(caps)
	}
	return caps, entered
}

// changeCaps saves the posted caps of a project, or of the account if project is empty, and redirects to path. It shows
// the form again if a value is invalid, or if the user wants to see the cost first.
func (w *Web) changeCaps(c *call, project, path string, show func(formErrors, *capsForm) error) error {
	var f formErrors
	caps, entered := readCaps(c, &f)
	caps.Version = c.formVersion()
	if project != "" && !c.PostForm.Has("cap-keys") { // the form of an earlier version
		saved, err := w.Dashboard.Credit.Project(c.Context(), c.account.ID, project)
		if err != nil {
			return err
		}
		caps.Keys = saved.Caps.Keys
	}
	if f.Failed() || c.PostFormValue("act") == "cost" {
		return show(f, &entered)
	}
	err := w.Dashboard.Credit.SetCaps(c.Context(), c.account.ID, project, caps, audit.Person())
	if errors.Is(err, credit.ErrConflict) {
		f.Problem = "The caps have changed since you opened this page, and yours are not saved yet. " +
			"The stored caps are listed under Activity. Save to replace them with yours."
		return show(f, &entered)
	}
	return c.done(err, path, "caps")
}

func (w *Web) changeAccountCaps(c *call) error {
	return w.changeCaps(c, "", creditPath, func(f formErrors, entered *capsForm) error {
		return w.showCredit(c, f, entered)
	})
}

// creditLine is a line about the account's credit or a project's spending, shown on other pages.
type creditLine struct {
	Available, Today, Month string
	Locked                  bool
	Notices                 []string
}

func (w *Web) accountLine(c *call) (creditLine, error) {
	own, err := w.Dashboard.Credit.Account(c.Context(), c.account.ID)
	if err != nil {
		return creditLine{}, err
	}
	notices, err := w.spendingNotices(c, "")
	return creditLine{Available: dollars(own.Available()), Today: dollars(own.Day.Spent), Month: dollars(own.Month.Spent),
		Locked: own.Locked, Notices: notices}, err
}

// spendingNotices lists notices about caps and credit that are almost used up.
func (w *Web) spendingNotices(c *call, project string) (texts []string, err error) {
	all, err := w.Dashboard.Credit.Notices(c.Context(), c.account.ID, project)
	for _, n := range all {
		texts = append(texts, n.Text())
	}
	return texts, err
}

func (w *Web) projectLine(c *call) (creditLine, error) {
	p, err := w.Dashboard.Credit.Project(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return creditLine{}, err
	}
	notices, err := w.spendingNotices(c, c.project.ID)
	return creditLine{Today: dollars(p.Day.Spent), Month: dollars(p.Month.Spent), Notices: notices}, err
}
