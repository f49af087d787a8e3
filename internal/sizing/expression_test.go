package sizing_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/internal/sizing"
)

// given makes values of name, value pairs.
func given(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestEvaluate(t *testing.T) {
	cases := map[string]struct {
		text  string
		given corev1.ResourceList
		want  string
	}{
		"half and a constant":                     {"cpu*50% + 100m", given("cpu", "600m"), "400m"},
		"at least, where more":                    {"max(cpu*50%, 50m)", given("cpu", "600m"), "300m"},
		"at least, where less":                    {"max(cpu*50%, 50m)", given("cpu", "80m"), "50m"},
		"at least of memory":                      {"max(memory*20% + 100Mi, 200Mi)", given("memory", "1000Mi"), "300Mi"},
		"requests of cpu":                         {"cpu*30% + 50m", given("cpu", "300m"), "140m"},
		"requests of memory":                      {"memory*15% + 50Mi", given("memory", "500Mi"), "125Mi"},
		"written as the operand is":               {"memory*25%", given("memory", "1000Mi"), "250Mi"},
		"a constant":                              {"200Mi", nil, "200Mi"},
		"a number is decimal":                     {"100", nil, "100"},
		"a fraction has thousandths":              {"1.5", nil, "1500m"},
		"a number is cut":                         {"2/3", nil, "666m"},
		"numbers are exact on the way":            {"1/3*3", nil, "1"},
		"nothing is 0":                            {"cpu*50%", given("cpu", "0"), "0"},
		"everything is subtracted":                {"cpu-cpu", given("cpu", "3"), "0"},
		"exponent":                                {"1e3", nil, "1k"},
		"exponent with a sign":                    {"1E+3-1e-3", nil, "999999m"},
		"percent of percent":                      {"50% * 50%", nil, "250m"},
		"percent of a float that is inexact":      {"cpu*57%", given("cpu", "100m"), "57m"},
		"percent apart":                           {"cpu * 50 %", given("cpu", "2"), "1"},
		"no digit before the point":               {"cpu*.5", given("cpu", "2"), "1"},
		"no digit behind the point":               {"cpu*5.", given("cpu", "2"), "10"},
		"product from the left":                   {"8/4*2", nil, "4"},
		"difference from the left":                {"8-4-2", nil, "2"},
		"product before sum":                      {"1+2*3", nil, "7"},
		"parentheses first":                       {"(1+2)*3", nil, "9"},
		"minus before a factor":                   {"-2*-3", nil, "6"},
		"minus of minus":                          {"--cpu", given("cpu", "2"), "2"},
		"minus before parentheses":                {"3 - -(cpu)", given("cpu", "2"), "5"},
		"negative on the way":                     {"cpu-5+4", given("cpu", "2"), "1"},
		"names of either case":                    {"MAX(Cpu, mIn(MEMORY, 1))", given("cpu", "2", "memory", "5"), "2"},
		"no white space":                          {"max(cpu*50%,50m)+1", given("cpu", "2"), "2"},
		"much white space":                        {"\n\tmax ( cpu\r\n * 50% , 50m ) ", given("cpu", "2"), "1"},
		"a number times a quantity":               {"50%*memory", given("memory", "1Gi"), "512Mi"},
		"a quantity divided":                      {"memory/3", given("memory", "1Ki"), "341333m"},
		"a negative quotient is cut to 0":         {"1-cpu/3", given("cpu", "-1m"), "1"},
		"a number meets a quantity on the left":   {"1024 + memory", given("memory", "1Ki"), "2Ki"},
		"a number meets a quantity on the right":  {"memory - 1024", given("memory", "2Ki"), "1Ki"},
		"a number is cut where it meets":          {"cpu + 0.0019", given("cpu", "1m"), "2m"},
		"a negative number is cut to 0":           {"cpu - 0.0009", given("cpu", "1m"), "1m"},
		"the first of a sum is how it is written": {"1Ki + 1024m*1000", nil, "2Ki"},
		"unless it is 0":                          {"cpu + 1Ki", given("cpu", "0"), "1Ki"},
		"a difference with 0 first":               {"0Mi - (-1) * cpu", given("cpu", "2048"), "2048"},
		"the larger number is a quantity":         {"max(memory, 2048) + 0", given("memory", "1Ki"), "2Ki"},
		"the smaller":                             {"min(memory, 2048)", given("memory", "1Ki"), "1Ki"},
		"a tie takes the left":                    {"max(2048m*1000, 2Ki)", nil, "2048"},
		"a tie takes the left of min":             {"min(2Ki, 2048)", nil, "2Ki"},
		"functions of numbers":                    {"cpu * max(2, min(3, 4))", given("cpu", "1"), "3"},
		"units":                                   {"1k+1M+1G+1T+1P", nil, "1001001001001k"},
		"binary units":                            {"1Ki+1Mi+1Gi+1Ti+1Pi", nil, "1100586419201Ki"},
		"finer than a thousandth":                 {"0.1m", nil, "1m"},
		"a value finer than a thousandth":         {"cpu", given("cpu", "100u"), "1m"},
		"a fraction of a unit":                    {"1.5Mi", nil, "1536Ki"},
		"an exponent that is missing":             {"1e", nil, "0"},
		"an exponent that is only a sign":         {"1e+", nil, "0"},
		"an exponent that is only E":              {"cpu + 1E", given("cpu", "1"), "1"},
		"a unit that is too large":                {"cpu + 1Ei", given("cpu", "1"), "1"},
		"a unit that is unknown":                  {"max(cpu, 100Mx)", given("cpu", "1"), "1"},
		"a unit in the wrong case":                {"2K", nil, "0"},
		"other values do not matter":              {"cpu", given("cpu", "1", "memory", "-1", "disk", "1"), "1"},
		"the largest": {
			"cpu",
			corev1.ResourceList{"cpu": *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)},
			"9223372036854775807m",
		},
		"a value without a format": {"cpu + 1000", corev1.ResourceList{"cpu": {}}, "1k"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := c.given.DeepCopy()
			e, err := sizing.ParseExpression(c.text)
			if err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			got, err := e.Evaluate(c.given)
			if err != nil || got.String() != c.want {
				t.Errorf("%s: want %s, got %s, %v", c.text, c.want, got.String(), err)
			}
			if diff := cmp.Diff(before, c.given); diff != "" {
				t.Errorf("the values changed: %s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("(", 100) + "cpu" + strings.Repeat(")", 100)
	cases := map[string]struct {
		text     string
		reason   sizing.Reason
		at       int
		expected string
		found    string
	}{
		"nothing":                      {"", sizing.Syntax, 0, "a number, a quantity", "the end"},
		"white space":                  {" \t ", sizing.Syntax, 3, "a number, a quantity", "the end"},
		"operators without operands":   {"cpu +*/ 50%", sizing.Syntax, 5, "a number, a quantity", `"*"`},
		"a sum that ends":              {"cpu +", sizing.Syntax, 5, "cpu, memory, max, min", "the end"},
		"a plus before":                {"+1", sizing.Syntax, 0, "a number", `"+"`},
		"two operands":                 {"cpu 2", sizing.Syntax, 4, "an operator or the end", `"2"`},
		"a unit apart":                 {"100 Mi", sizing.Syntax, 4, "an operator or the end", `"Mi"`},
		"two exponents":                {"1e3e2", sizing.Syntax, 3, "an operator", `"e2"`},
		"an exponent and a unit":       {"1e3Mi", sizing.Syntax, 3, "an operator", `"Mi"`},
		"two points":                   {"1.2.3", sizing.Syntax, 3, "an operator", `".3"`},
		"only a point":                 {".", sizing.Syntax, 0, "a number", `"."`},
		"two percent signs":            {"5%%", sizing.Syntax, 2, "an operator", `"%"`},
		"percent of a quantity":        {"5Mi%", sizing.Syntax, 3, "an operator", `"%"`},
		"a parenthesis that is open":   {"(cpu", sizing.Syntax, 4, `")"`, "the end"},
		"a parenthesis too many":       {"cpu)", sizing.Syntax, 3, "an operator or the end", `")"`},
		"nothing in parentheses":       {"()", sizing.Syntax, 1, "a number", `")"`},
		"a function without arguments": {"max", sizing.Syntax, 3, `"("`, "the end"},
		"a function of one":            {"max(cpu)", sizing.Syntax, 7, `","`, `")"`},
		"a function of three":          {"min(1, 2, 3)", sizing.Syntax, 8, `")"`, `","`},
		"another function":             {"avg(1, 2)", sizing.Undefined, 0, "cpu, memory, max or min", `"avg"`},
		"another variable":             {"cpu*disk", sizing.Undefined, 4, "cpu, memory, max or min", `"disk"`},
		"another sign":                 {"cpu^2", sizing.Syntax, 3, "an operator", `"^"`},
		"another alphabet":             {"cpu*½", sizing.Syntax, 4, "a number", `"½"`},
		"no text":                      {"\xff", sizing.Syntax, 0, "a number", `"\xff"`},
		"long names are cut": {
			text:     strings.Repeat("x", 30),
			reason:   sizing.Undefined,
			expected: "cpu",
			found:    `"` + strings.Repeat("x", 20) + `"...`,
		},
		"quantity times quantity":      {"cpu*cpu", sizing.Kind, 3, "a number", "a quantity"},
		"quantity times literal":       {"2 * cpu * 100m", sizing.Kind, 8, "a number", "a quantity"},
		"divided by a quantity":        {"1/memory", sizing.Kind, 1, "a number", "a quantity"},
		"divided by the max of both":   {"cpu/max(2, 1m)", sizing.Kind, 3, "a number", "a quantity"},
		"divided by 0":                 {"cpu/0", sizing.DivisionByZero, 3, "other than 0", "0"},
		"a number divided by 0":        {"1 + 1/(2-2)", sizing.DivisionByZero, 5, "other than 0", "0"},
		"divided by what counts as 0":  {"cpu/100Mx", sizing.DivisionByZero, 3, "other than 0", "0"},
		"a negative number":            {"2-3", sizing.Negative, 1, "at least 0", "-1"},
		"a negative quantity":          {"100m-200m", sizing.Negative, 4, "at least 0", "-100m"},
		"a literal that is too large":  {"1 + 9Pi", sizing.Overflow, 4, "can be held", `"9Pi"`},
		"a number that is too large":   {"1e100*1e100", sizing.Overflow, 5, "can be held", "too large or too fine"},
		"a number that is too fine":    {"1e-100/1e100", sizing.Overflow, 6, "can be held", "too large or too fine"},
		"a literal with many digits":   {"0." + strings.Repeat("1", 200), sizing.Overflow, 0, "can be held", `"0.111`},
		"an exponent that is too high": {"1e101", sizing.Overflow, 0, "at most 100", `"1e101"`},
		"an exponent of many digits":   {"1e-99999999999999999999", sizing.Overflow, 0, "at most 100", `"1e-9999`},
		"a number is no such quantity": {"1e16", sizing.Overflow, 0, "can be held", "2^63 thousandths"},
		"a number meets a quantity":    {"cpu + 1e16", sizing.Overflow, 4, "can be held", "2^63 thousandths"},
		"a sum of literals":            {"5Pi+5Pi", sizing.Overflow, 3, "can be held", "2^63 thousandths"},
		"too long": {
			text:     strings.Repeat(" ", 4096) + "1",
			reason:   sizing.Limit,
			at:       4096,
			expected: "at most 4096 bytes",
			found:    "4097",
		},
		"too deep":             {deep, sizing.Limit, 100, "at most 100", "more"},
		"too many minus signs": {strings.Repeat("-", 100) + "1", sizing.Limit, 100, "at most 100", "more"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sizing.ParseExpression(c.text)
			refused(t, err, c.reason, c.at, c.expected, c.found)
		})
	}
}

// refused fails unless an error is of the reason, at the place, and speaks of what was expected and found.
func refused(t *testing.T, err error, reason sizing.Reason, at int, expected, found string) {
	t.Helper()
	var e *sizing.ExpressionError
	if !errors.As(err, &e) {
		t.Fatalf("want an *Error, got %v", err)
	}
	if e.Reason != reason || e.At != at || !strings.Contains(e.Expected, expected) || !strings.Contains(e.Found, found) {
		t.Errorf("want %s at %d, %q, %q; got %s: %v", reason, at, expected, found, e.Reason, e)
	}
	for _, part := range []string{e.Expected, e.Found} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q does not tell %q", e.Error(), part)
		}
	}
}

func TestEvaluateRefuses(t *testing.T) {
	cases := map[string]struct {
		text   string
		given  corev1.ResourceList
		reason sizing.Reason
		at     int
		found  string
	}{
		"a value that is missing":       {"1 + memory", given("cpu", "1"), sizing.Undefined, 4, "memory"},
		"no values":                     {"cpu", nil, sizing.Undefined, 0, "cpu"},
		"a negative result":             {"cpu-200m", given("cpu", "100m"), sizing.Negative, 3, "-100m"},
		"a negative value":              {"cpu", given("cpu", "-1"), sizing.Negative, 0, "-1"},
		"a value that is too large":     {"1+memory", given("memory", "1Ei"), sizing.Overflow, 2, "1Ei"},
		"a value that is too small":     {"1+memory", given("memory", "-1Ei"), sizing.Overflow, 2, "-1Ei"},
		"a sum":                         {"memory+5Pi", given("memory", "5Pi"), sizing.Overflow, 6, "2^63"},
		"a difference":                  {"memory-5Pi", given("memory", "-5Pi"), sizing.Overflow, 6, "2^63"},
		"a quotient":                    {"memory/1e-9", given("memory", "5Ti"), sizing.Overflow, 6, "2^63"},
		"a product":                     {"memory*3", given("memory", "5Pi"), sizing.Overflow, 6, "2^63"},
		"on the way, though not at end": {"memory*10/10", given("memory", "5Pi"), sizing.Overflow, 6, "2^63"},
		"the negative of the least": {
			text:   "-cpu",
			given:  corev1.ResourceList{"cpu": *resource.NewMilliQuantity(math.MinInt64, resource.DecimalSI)},
			reason: sizing.Overflow,
			found:  "2^63",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := sizing.ParseExpression(c.text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Evaluate(c.given)
			refused(t, err, c.reason, c.at, "", c.found)
		})
	}
}

func TestZeroExpression(t *testing.T) {
	var e sizing.Expression
	_, err := e.Evaluate(given("cpu", "1"))
	refused(t, err, sizing.Syntax, 0, "an expression", "none")
	refused(t, e.Check(corev1.ResourceCPU), sizing.Syntax, 0, "an expression", "none")
}

func TestCheckExpression(t *testing.T) {
	cases := map[string]struct {
		text   string
		of     corev1.ResourceName
		reason sizing.Reason
	}{
		"negative for small values":     {"memory-100Mi", "memory", ""},
		"negative below 2":              {"cpu-2", "cpu", ""},
		"negative above 1":              {"1-cpu", "cpu", ""},
		"only 0 will do":                {"-cpu", "cpu", ""},
		"a constant":                    {"200Mi", "memory", ""},
		"only one unit will do":         {"min(cpu-1, 1-cpu)", "cpu", ""},
		"only small values can be held": {"cpu*1e17", "cpu", ""},
		"always negative":               {"-cpu-1m", "cpu", sizing.Negative},
		"the other variable":            {"memory*50%", "cpu", sizing.Undefined},
		"both":                          {"max(cpu, memory)", "memory", sizing.Undefined},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := sizing.ParseExpression(c.text)
			if err != nil {
				t.Fatal(err)
			}
			err = e.Check(c.of)
			var got *sizing.ExpressionError
			switch {
			case c.reason == "" && err != nil:
				t.Error(err)
			case c.reason != "" && (!errors.As(err, &got) || got.Reason != c.reason):
				t.Errorf("want %s, got %v", c.reason, err)
			}
		})
	}
}
