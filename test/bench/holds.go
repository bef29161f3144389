package main

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

const holdRounds = 3

var holdRate = regexp.MustCompile(`BenchmarkCredit_Holds/(ours|bare)\S*\s.*?([0-9.]+) holds/s`)

// holds measures how many holds per second 100 clients of one account can make on PostgreSQL, compared with one plain
// SQL statement per hold. There is no HTTP request that only makes a hold, so this step runs the ledger's benchmark.
func (b *bench) holds() error {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "BenchmarkCredit_Holds", "-benchtime", "2s", "-count",
		strconv.Itoa(holdRounds), "./backend/internal/credit").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	rates := map[string][]float64{}
	for _, found := range holdRate.FindAllStringSubmatch(string(out), -1) {
		rate, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return err
		}
		rates[found[1]] = append(rates[found[1]], rate)
	}
	if len(rates["ours"]) != holdRounds || len(rates["bare"]) != holdRounds {
		return errors.New("the benchmark was not run: is PostgreSQL missing?")
	}
	b.rows = append(b.rows, ratesRow("holds of 100 clients of one account, PostgreSQL / one statement for each",
		middle(rates["ours"]), middle(rates["bare"]), ">= 1500 /s"))
	return nil
}
