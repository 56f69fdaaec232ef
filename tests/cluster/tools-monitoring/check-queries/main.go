// Checks PromQL as Prometheus itself parses it: a file of alert rules, and the queries of a Grafana dashboard.
//
//	check-queries RULES.yaml DASHBOARD.json
//
// Prints the metrics that they read, a line each; on stderr what is wrong, with exit status 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

type check struct {
	metrics map[string]bool
	wrong   int
}

func (c *check) fail(where string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", where, err)
	c.wrong++
}

func (c *check) query(where, text string) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		c.fail(where, err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			c.metrics[selector.Name] = true
		}
		return nil
	})
}

func (c *check) rules(path string) {
	groups, errs := rulefmt.ParseFile(path, false)
	for _, err := range errs {
		c.fail(path, err)
	}
	if groups == nil {
		return
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			c.query(path+": "+rule.Alert, rule.Expr)
		}
	}
}

func (c *check) dashboard(path string) {
	text, err := os.ReadFile(path)
	var read dashboard
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		c.fail(path, err)
		return
	}
	for _, panel := range read.Panels {
		for _, target := range panel.Targets {
			c.query(path+": "+panel.Title, target.Expr)
		}
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check-queries RULES.yaml DASHBOARD.json")
		os.Exit(2)
	}
	c := check{metrics: map[string]bool{}}
	c.rules(os.Args[1])
	c.dashboard(os.Args[2])
	var names []string
	for name := range c.metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Println(strings.Join(names, "\n"))
	if c.wrong > 0 {
		os.Exit(1)
	}
}
