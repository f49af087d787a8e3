package sizing_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
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
		"written as the operand is":               {"memory*25%", given("memory", "1000Mi"), "250Mi"},
		"a constant":                              {"200Mi", nil, "200Mi"},
		"a number is decimal":                     {"100", nil, "100"},
		"a fraction has thousandths":              {"1.5", nil, "1500m"},
		"exponent":                                {"1e3", nil, "1k"},
		"exponent with a sign":                    {"1E+3-1e-3", nil, "999999m"},
		"percent of a float that is inexact":      {"cpu*57%", given("cpu", "100m"), "57m"},
		"percent apart":                           {"cpu * 50 %", given("cpu", "2"), "1"},
		"no digit before the point":               {"cpu*.5", given("cpu", "2"), "1"},
		"no digit behind the point":               {"cpu*5.", given("cpu", "2"), "10"},
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
			got, err := sizing.Evaluate(c.text, c.given)
			if err != nil || got.String() != c.want {
				t.Errorf("%s: want %s, got %s, %v", c.text, c.want, got.String(), err)
			}
			if diff := cmp.Diff(before, c.given); diff != "" {
				t.Errorf("the values changed: %s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	deep := strings.Repeat("(", 100) + "cpu" + strings.Repeat(")", 100)
	cases := map[string]struct {
		text            string
		at              int
		expected, found string
	}{
		"nothing":                      {"", 0, "a number, a quantity", "the end"},
		"white space":                  {" \t ", 3, "a number, a quantity", "the end"},
		"operators without operands":   {"cpu +*/ 50%", 5, "a number, a quantity", `"*"`},
		"a plus before":                {"+1", 0, "a number", `"+"`},
		"two operands":                 {"cpu 2", 4, "an operator or the end", `"2"`},
		"a unit apart":                 {"100 Mi", 4, "an operator or the end", `"Mi"`},
		"an exponent and a unit":       {"1e3Mi", 3, "an operator", `"Mi"`},
		"only a point":                 {".", 0, "a number", `"."`},
		"percent of a quantity":        {"5Mi%", 3, "an operator", `"%"`},
		"a parenthesis that is open":   {"(cpu", 4, `")"`, "the end"},
		"a parenthesis too many":       {"cpu)", 3, "an operator or the end", `")"`},
		"a function without arguments": {"max", 3, `"("`, "the end"},
		"a function of one":            {"max(cpu)", 7, `","`, `")"`},
		"another function":             {"avg(1, 2)", 0, "cpu, memory, max or min", `"avg"`},
		"another variable":             {"cpu*disk", 4, "cpu, memory, max or min", `"disk"`},
		"another sign":                 {"cpu^2", 3, "an operator", `"^"`},
		"another alphabet":             {"cpu*½", 4, "a number", `"½"`},
		"no text":                      {"\xff", 0, "a number", `"\xff"`},
		"long names are cut": {
			text:     strings.Repeat("x", 30),
			expected: "cpu",
			found:    `"` + strings.Repeat("x", 20) + `"...`,
		},
		"quantity times quantity":      {"cpu*cpu", 3, "a number", "a quantity"},
		"divided by a quantity":        {"1/memory", 1, "a number", "a quantity"},
		"divided by 0":                 {"cpu/0", 3, "non-zero", "0"},
		"divided by what counts as 0":  {"cpu/100Mx", 3, "non-zero", "0"},
		"a negative number":            {"2-3", -1, "at least 0", "-1"},
		"a negative quantity":          {"100m-200m", -1, "at least 0", "-100m"},
		"a literal that is too large":  {"1 + 9Pi", 4, "can be held", `"9Pi"`},
		"a number that is too large":   {"1e100*1e100", 5, "can be held", "too large or too fine"},
		"a number that is too fine":    {"1e-100/1e100", 6, "can be held", "too large or too fine"},
		"a literal with many digits":   {"0." + strings.Repeat("1", 200), 0, "can be held", `"0.111`},
		"an exponent that is too high": {"1e101", 0, "at most 100", `"1e101"`},
		"an exponent of many digits":   {"1e-99999999999999999999", 0, "at most 100", `"1e-9999`},
		"a number is no such quantity": {"1e16", 0, "can be held", "2^63 thousandths"},
		"a number meets a quantity":    {"cpu + 1e16", 4, "can be held", "2^63 thousandths"},
		"a sum of literals":            {"5Pi+5Pi", 3, "can be held", "2^63 thousandths"},
		"too long": {
			text:     strings.Repeat(" ", 4096) + "1",
			at:       -1,
			expected: "at most 4096 bytes",
			found:    "4097",
		},
		"too deep":             {deep, 100, "at most 100", "more"},
		"too many minus signs": {strings.Repeat("-", 100) + "1", 100, "at most 100", "more"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sizing.Evaluate(c.text, given("cpu", "1", "memory", "1"))
			refused(t, err, c.at, c.expected, c.found)
		})
	}
}

// refused fails unless an error is at the place, where that is not negative, and names what was expected and found.
func refused(t *testing.T, err error, at int, expected, found string) {
	t.Helper()
	if err == nil {
		t.Fatal("want an error")
	}
	place, text, _ := strings.Cut(err.Error(), "expected ")
	wanted, got, _ := strings.Cut(text, ", found ")
	if at >= 0 && place != fmt.Sprintf("at %d: ", at) ||
		!strings.Contains(wanted, expected) || !strings.Contains(got, found) {
		t.Errorf("want at %d, %q, %q; got %v", at, expected, found, err)
	}
}

func TestEvaluateRefuses(t *testing.T) {
	cases := map[string]struct {
		text  string
		given corev1.ResourceList
		at    int
		found string
	}{
		"a value that is missing":       {"1 + memory", given("cpu", "1"), 4, "memory"},
		"no values":                     {"cpu", nil, 0, "cpu"},
		"a negative value":              {"cpu", given("cpu", "-1"), -1, "-1"},
		"on the way, though not at end": {"memory*10/10", given("memory", "5Pi"), 6, "2^63"},
		"the negative of the least": {
			text:  "-cpu",
			given: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(math.MinInt64, resource.DecimalSI)},
			found: "2^63",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := sizing.Evaluate(c.text, c.given)
			refused(t, err, c.at, "", c.found)
		})
	}
}

func TestCheckExpression(t *testing.T) {
	cases := map[string]struct {
		text string
		of   corev1.ResourceName
		want string
	}{
		"negative for small values":     {"memory-100Mi", "memory", ""},
		"negative below 2":              {"cpu-2", "cpu", ""},
		"negative above 1":              {"1-cpu", "cpu", ""},
		"only 0 will do":                {"-cpu", "cpu", ""},
		"a constant":                    {"200Mi", "memory", ""},
		"only one unit will do":         {"min(cpu-1, 1-cpu)", "cpu", ""},
		"only small values can be held": {"cpu*1e17", "cpu", ""},
		"always negative":               {"-cpu-1m", "cpu", "at least 0"},
		"constantly negative":           {"2-3", "cpu", "at least 0"},
		"quantities multiplied":         {"cpu*cpu", "cpu", "a quantity"},
		"divided by 0":                  {"cpu/0", "cpu", "non-zero"},
		"the other variable":            {"memory*50%", "cpu", "a variable"},
		"both":                          {"max(cpu, memory)", "memory", "a variable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := sizing.CheckExpression(c.text, c.of)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}
