package glasses

import (
	"fmt"
	"strings"
)

// NeverMatches explains why no row of an event log can have these fields, or returns "". An empty field matches every
// row.
func NeverMatches(typ, kind, chip, sender string) string {
	var possible []string
	for _, row := range rowsOf(typ) {
		if fieldFits(kind, row.Kind) && fieldFits(chip, row.Chip) && fieldFits(sender, row.Sender) {
			return ""
		}
		words := fmt.Sprintf("kind %s and sender %s", row.Kind, row.Sender)
		if row.Chip != "" {
			words += " on the chip " + row.Chip
		}
		possible = append(possible, words)
	}
	if typ == "" {
		return "entries have " + strings.Join(possible, ", or ")
	}
	return typ + " has " + strings.Join(possible, ", or ")
}

func fieldFits(want, of string) bool { return want == "" || of == "" || want == of }

// servesRow reports whether the service itself writes rows of a type.
func servesRow(typ string) bool {
	return typ == TypeTranscription || typ == TypeDevice || !IsCommand(typ) && !FromGlasses(typ)
}

// rowsOf returns the kinds, chips and senders that rows of a type can have. An empty chip is any chip.
func rowsOf(typ string) (rows []Event) {
	if typ == "" {
		return []Event{{Kind: KindRequest, Sender: SenderApp}, {Kind: KindResult, Sender: SenderGlasses},
			{Kind: KindResult, Sender: SenderService}, {Kind: KindEvent, Sender: SenderApp},
			{Kind: KindEvent, Sender: SenderGlasses}, {Kind: KindEvent, Sender: SenderService}}
	}
	row := Event{Kind: KindOf(typ), Chip: ChipOf(typ)}
	if typ == TypeResult {
		row.Chip = "" // that of its command, or errors
	}
	for _, sender := range []string{SenderApp, SenderGlasses, SenderService} {
		if sender == SenderService && !servesRow(typ) || sender != SenderService && MaySend(sender, typ) != nil ||
			sender == SenderGlasses && !FromGlasses(typ) && typ != TypeResult {
			continue
		}
		one := row
		one.Sender = sender
		if sender == SenderApp && row.Kind == KindEvent {
			one.Chip = ChipCustom
		}
		rows = append(rows, one)
	}
	return rows
}
