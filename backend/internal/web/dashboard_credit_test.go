package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

func TestCredit_ShowsBalanceAndEveryTransfer(t *testing.T) {
	h := newDashboardWorld(t)
	h.spend(120)
	if _, err := h.credit.Grant(t.Context(), adaID, 5*credit.USD, "INV-7", "", audit.Operator()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.credit.Take(t.Context(), adaID, 500_000, "INV-8", "refund <b>", audit.Operator()); err != nil {
		t.Fatal(err)
	}
	const transfers = 123 // 120 calls, free credit, a payment and a refund
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(creditPath).want(http.StatusOK, "$6.3532", "$0.02", "$0.0125", "$0.1268",
		"$2.00, granted once", h.account().Book,
		"This backend has no payment page", "INV-8 · refund &lt;b&gt;", "−$0.50",
		"Paid in", "&#43;$5.00", "Older")
	v.lacks("Newer", "credit_locked", "Free credit</th>", "Pay in</a>")
	rows := strings.Count(v.page, `data-label="Amount"`)
	for _, page := range []string{"?page=2", "?page=3"} {
		v.get(creditPath+page).want(http.StatusOK, "Newer")
		rows += strings.Count(v.page, `data-label="Amount"`)
	}
	if rows != transfers {
		t.Errorf("the three pages list %d transfers, want %d", rows, transfers)
	}
	v.want(http.StatusOK, "Free credit<", "&#43;$2.00").lacks("Older")
	for _, odd := range []string{"?page=0", "?page=-1", "?page=x", "?page=99999999999999999999"} {
		v.get(creditPath+odd).want(http.StatusOK, "INV-8")
	}
}

func TestCredit_SaysWhatWaitsAndWhereToPay(t *testing.T) {
	h := newDashboardWorld(t)
	h.spend(2)
	h.credit = h.newLedger(func(o *credit.Options) { o.NeedsProof, o.TopUpURL = true, "https://pay.example.org/" })
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	v.get(creditPath).want(http.StatusOK, "Confirm your e-mail address",
		`href="https://pay.example.org/?account=`+h.account().Book+`"`)
	v.lacks("This backend has no payment page")
	v.get("/account").want(http.StatusOK, "$1.8532 available; spent $0.0125 today and $0.1268 this month",
		"Confirm your e-mail address")
	v.get(helloPath).want(http.StatusOK, "Calls to models cost $0.0125 today and $0.1268 this month")
}

func TestCredit_CapsTellTheCostBeforeAndAfter(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(creditPath).want(http.StatusOK, "the account&#39;s whole credit")
	caps := creditPath + "/caps"
	v.post(caps, v.form("version", "0", "cap-day", "0.50", "cap-month", "", "act", "cost")).
		want(http.StatusOK, "<strong>$15.50</strong>", `value="0.50"`)
	if len(h.called()) > 0 {
		t.Fatal("a request to show the cost saved a change")
	}
	v.post(caps, v.form("cap-day", "a lot", "cap-month", "-1")).want(http.StatusUnprocessableEntity, `value="a lot"`,
		`id="cap-day-error"`, `id="cap-month-error"`, "<title>Error:")
	v.post(caps, v.form("cap-day", "9999999", "cap-month", "")).want(http.StatusUnprocessableEntity, `id="cap-day-error"`)
	v.get(creditPath)
	v.post(caps, v.form("version", "0", "cap-day", "$0.50", "cap-month", "3")).onward().
		want(http.StatusOK, "It applies from the next call", `value="0.50"`, `value="3.00"`, "at most <strong>$3.00</strong>")
	stale := v.form("cap-day", "0", "cap-month", "")
	stale.Set("version", "0")
	v.post(caps, stale).
		want(http.StatusUnprocessableEntity, "The caps have changed since you opened this page", `value="1"`)
	v.post(caps, v.form("version", "1", "cap-day", "0", "cap-month", "")).onward().
		want(http.StatusOK, "at most <strong>$0.00</strong>")
	if c := h.caps(""); c.Day == nil || *c.Day != 0 || c.Month != nil {
		t.Errorf("got caps %+v", c)
	}
}

// The account's banner appears on every page about spending, a project's banner only on the project's pages.
func TestCredit_BannerWhenMostIsSpent(t *testing.T) {
	h := newDashboardWorld(t)
	h.pass(-24 * time.Hour)
	h.charge(1_250_000)
	h.pass(24 * time.Hour)
	h.charge(450_000)
	dayCap := credit.Amount(500_000)
	if err := h.credit.SetCaps(t.Context(), adaID, hello, credit.Caps{Day: &dayCap}, audit.Person()); err != nil {
		t.Fatal(err)
	}
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	for _, path := range []string{"/account", creditPath} {
		v.get(path).want(http.StatusOK, "$0.30 of credit are left of $2.00").lacks("of its cap")
	}
	for _, path := range []string{helloPath, helloGateway} {
		v.get(path).want(http.StatusOK, "$0.30 of credit are left", "has spent $0.45 of its cap of $0.50 a day")
	}
	v.get("/account/projects/com.example.other/gateway").want(http.StatusOK, "credit are left").lacks("of its cap")
	signedIn(t, site, "eve@example.org").get(creditPath).want(http.StatusOK).lacks("credit are left")
}

func TestCredit_CapsCanBeUndone(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	for path, project := range map[string]string{helloGateway: hello, creditPath: ""} {
		v.get(path)
		v.post(path+"/caps", v.form("version", "0", "cap-day", "1", "cap-month", "")).want(http.StatusSeeOther)
		undo := "/account/audit/" + h.entries()[len(h.entries())-1].ID + "/undo"
		v.get("/account/audit").want(http.StatusOK, "Spending caps changed", `action="`+undo+`"`)
		v.post(undo, v.form()).onward().want(http.StatusOK, "Undone.")
		if c := h.caps(project); c.Day != nil || c.Version != 2 {
			t.Errorf("%s: got caps %+v, want none in version 2", path, c)
		}
	}
}
