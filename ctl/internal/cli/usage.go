package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/proto/backendapi"
)

func (a *app) usage() *cobra.Command {
	var project, span string
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what a project's AI calls cost", Args: cobra.NoArgs,
		Long: "Shows what a project's calls through the AI gateway cost: the credit, caps, models, and refused calls with\n" +
			"the next step. Amounts are US dollars, times are UTC. Needs a linked account.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var u backendapi.GatewayUsage
			args := map[string]any{}
			for name, value := range map[string]string{"project": project, "range": span} {
				if value != "" {
					args[name] = value
				}
			}
			return a.PrintTool(cmd.Context(), "getGatewayUsage", args, &u, func() { a.showUsage(u) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&project, "project", "", "id of the project (default: the project of this directory)")
	flags.StringVar(&span, "range", "", "24h, 7d, 30d or 90d; default 7d")
	return cmd
}

func (a *app) showUsage(u backendapi.GatewayUsage) {
	rows := [][]string{
		{"project", u.Project},
		{"range", day(u.Range.From) + " to " + day(u.Range.To)},
		{"spent", spentText(u.Totals)},
		{"credit", creditText(u.Credit)},
	}
	if u.KeySource != nil {
		rows = append(rows, []string{"paid by", strings.ReplaceAll(*u.KeySource, "_", " ")})
	}
	for _, c := range []struct {
		of  string
		cap *backendapi.GatewayCap
	}{{"project, day", u.Caps.Day}, {"project, month", u.Caps.Month}, {"account, day", u.Caps.AccountDay},
		{"account, month", u.Caps.AccountMonth}, {"project keys, day", u.Caps.ProjectKeysDay}} {
		if c.cap != nil {
			rows = append(rows, []string{"cap", fmt.Sprintf("%s: %s of %s, resets %s", c.of,
				backendapi.Dollars(c.cap.SpentMicroUSD), backendapi.Dollars(c.cap.LimitMicroUSD), day(c.cap.ResetsAt))})
		}
	}
	if m, ok := assistantOf(u); ok {
		rows = append(rows, []string{m.ID, modelText(m)})
	}
	a.Pairs(rows)
	if len(u.ByModel) > 0 {
		a.Say("")
		a.Table(byModel(u))
	}
	if len(u.Refusals) > 0 {
		a.Say("")
		table := [][]string{{"REFUSED", "CALLS", "NEXT STEP"}}
		for _, r := range u.Refusals {
			table = append(table, []string{r.Code, fmt.Sprint(r.Count), r.FixHint})
		}
		a.Table(table)
	} else if next := nextOfUsage(u); next != "" {
		a.Next("%s", next)
	}
}

// byModel returns the table of models. It has columns for sound if a model heard or spoke.
func byModel(u backendapi.GatewayUsage) [][]string {
	table := [][]string{{"MODEL", "CALLS", "TOKENS IN", "TOKENS OUT", "SPENT"}}
	hasSound := u.Totals.AudioIn+u.Totals.AudioCached+u.Totals.AudioOut > 0
	if hasSound {
		table[0] = []string{"MODEL", "CALLS", "TEXT IN", "CACHED", "TEXT OUT", "SOUND IN", "CACHED", "SOUND OUT", "SPENT"}
	}
	for _, m := range u.ByModel {
		tokens := []int64{m.Calls, m.TextIn + m.TextCached, m.TextOut}
		if hasSound {
			tokens = []int64{m.Calls, m.TextIn, m.TextCached, m.TextOut, m.AudioIn, m.AudioCached, m.AudioOut}
		}
		row := []string{m.Model}
		for _, n := range tokens {
			row = append(row, fmt.Sprint(n))
		}
		table = append(table, append(row, backendapi.Dollars(m.MicroUSD)))
	}
	return table
}

// day returns the date of a timestamp.
func day(timestamp string) string {
	date, _, _ := strings.Cut(timestamp, "T")
	return date
}

func spentText(s backendapi.GatewaySums) string {
	text := fmt.Sprintf("%s in %d calls", backendapi.Dollars(s.MicroUSD), s.Calls)
	for _, part := range []struct {
		n    int64
		what string
	}{{s.Failed, "failed"}, {s.Cancelled, "cancelled"}, {s.Estimated, "estimated"}, {s.Refused, "refused beside them"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

func creditText(c backendapi.GatewayCredit) string {
	parts := []string{backendapi.Dollars(c.BalanceMicroUSD)}
	if c.ReservedMicroUSD > 0 {
		parts = append(parts, backendapi.Dollars(c.ReservedMicroUSD)+" of it reserved by calls in flight")
	}
	if c.Locked {
		parts = append(parts, "locked")
	}
	return strings.Join(parts, ", ")
}

// assistantOf returns the model that apps use as "assistant".
func assistantOf(u backendapi.GatewayUsage) (backendapi.GatewayModel, bool) {
	for _, m := range u.Models {
		if m.ID == "assistant" {
			return m, true
		}
	}
	return backendapi.GatewayModel{}, false
}

func modelText(m backendapi.GatewayModel) string {
	switch {
	case m.Available && m.Resolves != nil:
		return *m.Resolves
	case m.Available:
		return "available"
	case m.Why != nil:
		return "not available: " + *m.Why
	}
	return "not available"
}

// nextOfUsage returns the next step if no call was refused, or "".
func nextOfUsage(u backendapi.GatewayUsage) string {
	m, known := assistantOf(u)
	switch {
	case u.Credit.Locked:
		return "confirm the account's e-mail address on the settings page: the credit is locked until then"
	case u.Credit.BalanceMicroUSD <= u.Credit.ReservedMicroUSD:
		return "add credit on the account's credit page; models of local servers cost nothing"
	case known && !m.Available && len(u.Models) == 1: // assistant is the only model
		return "ask the backend's operator for models, or add a local server if the backend is on your machine"
	case known && !m.Available:
		return "choose another model for assistant on the project's page, or ask the backend's operator"
	case u.Totals.Calls == 0:
		return "have the app ask the model assistant: `servicectl tool call getCapabilityGuide --arg capability=assistant`"
	}
	return ""
}
