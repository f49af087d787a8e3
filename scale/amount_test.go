package scale_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/scale"
)

func TestAmount(t *testing.T) {
	cases := map[string]struct {
		value string // a number when it does not end in %
		total int32
		up    int32
		down  int32
	}{
		"number":                     {"3", 10, 3, 3},
		"negative number":            {"-3", 10, -3, -3},
		"odd":                        {"25%", 10, 3, 2},
		"nothing":                    {"0%", 10, 0, 0},
		"above all":                  {"150%", 10, 15, 15},
		"fraction":                   {"33.3%", 10, 4, 3},
		"exact where floats are not": {"14%", 50, 7, 7},
		"tiny":                       {"0.0001%", 10, 1, 0},
		"without a zero":             {".5%", 1000, 5, 5},
		"negative":                   {"-25%", 10, -2, -3},
		"many zeros":                 {"0000000000000000000010.0000000000000000000%", 10, 1, 1},
		"more than there are":        {"999999999999999%", math.MaxInt32, math.MaxInt32, math.MaxInt32},
		"less than there are":        {"-999999999999999%", math.MaxInt32, math.MinInt32, math.MinInt32},
		"far more than there are":    {strings.Repeat("9", 60) + "%", 3, math.MaxInt32, math.MaxInt32},
		"tinier":                     {"0.0000000000000001%", 10, 1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := intstr.Parse(c.value)
			for rounding, want := range map[scale.Rounding]int32{scale.RoundUp: c.up, scale.RoundDown: c.down} {
				got, err := scale.Amount(v, c.total, rounding)
				if err != nil || got != want {
					t.Errorf("%s of %d, rounded down: %v: want %d, got %d, %v", c.value, c.total, rounding, want, got, err)
				}
			}
		})
	}
}

func TestAmountRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"5": "does not end in %", "": "does not end in %", "%": "not a decimal number", "-%": "not a decimal number",
		".%": "not a decimal number",
		"a%": "not a decimal number", "1e3%": "not a decimal number", "1.2.3%": "not a decimal number",
		"--1%": "not a decimal number", "1_0%": "not a decimal number", " 1%": "not a decimal number",
		"0x1%": "not a decimal number", "1-%": "not a decimal number", "1.+5%": "not a decimal number",
		strings.Repeat("9", 64) + "%": "more than 64 characters",
	} {
		_, err := scale.Amount(intstr.FromString(text), 10, scale.RoundUp)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: want %q, got %v", text, reason, err)
		}
	}
}

func TestPartition(t *testing.T) {
	cases := map[string]struct {
		value    string
		replicas int32
		want     int32
	}{
		"above replicas":                         {"30", 10, 10},
		"below zero":                             {"-1", 10, 0},
		"99% lets one through":                   {"99%", 10, 9},
		"99% of one is one":                      {"99%", 1, 1},
		"100.0% is not the text":                 {"100.0%", 10, 9},
		"150% is below none, but no text either": {"150%", 10, 10},
		"negative percentage":                    {"-50%", 10, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v := intstr.Parse(c.value)
			if got, err := scale.Partition(&v, c.replicas); err != nil || got != c.want {
				t.Errorf("%s of %d: want %d, got %d, %v", c.value, c.replicas, c.want, got, err)
			}
		})
	}
	if got, err := scale.Partition(nil, 10); err != nil || got != 0 {
		t.Errorf("none: want 0, got %d, %v", got, err)
	}
}

// FuzzAmount compares with rational numbers.
func FuzzAmount(f *testing.F) {
	f.Add("33.3%", int32(10))
	f.Add("-0.5%", int32(-7))
	f.Add("999999999999999%", int32(math.MaxInt32))
	f.Fuzz(func(t *testing.T, text string, total int32) {
		up, err := scale.Amount(intstr.FromString(text), total, scale.RoundUp)
		if err != nil {
			return
		}
		down, err := scale.Amount(intstr.FromString(text), total, scale.RoundDown)
		if err != nil {
			t.Fatal(err)
		}
		number := strings.TrimSuffix(text, "%")
		want, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatalf("%q is accepted, and no number", text)
		}
		want.Mul(want, big.NewRat(int64(total), 100))
		floor := new(big.Int).Div(want.Num(), want.Denom())
		ceil := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(want.Num()), want.Denom()))
		for got, exact := range map[int32]*big.Int{up: ceil, down: floor} {
			limited := exact
			if !exact.IsInt64() || exact.Int64() > math.MaxInt32 || exact.Int64() < math.MinInt32 {
				limited = big.NewInt(math.MaxInt32)
				if exact.Sign() < 0 {
					limited = big.NewInt(math.MinInt32)
				}
			}
			if up != down && limited.Int64() != int64(got) ||
				up == down && floor.Cmp(ceil) == 0 && limited.Int64() != int64(got) {
				t.Errorf("%s of %d: want %s, got %d", text, total, limited, got)
			}
		}
	})
}

func TestResolveFenceposts(t *testing.T) {
	cases := map[string]struct {
		surge, unavailable string // empty for none
		desired            int32
		wantSurge, want    int32
	}{
		"neither: one pod may always go":                                 {"", "", 6, 0, 1},
		"10% of 6: rounded down to nothing, an update would stand still": {"", "10%", 6, 0, 1},
		"both to nothing: one pod may always go":                         {"0%", "10%", 6, 0, 1},
		"surge is enough: no pod need be unavailable":                    {"10%", "10%", 6, 1, 0},
		"default: surge up, unavailable down":                            {"25%", "25%", 10, 3, 2},
		"numbers: as they are":                                           {"2", "3", 10, 2, 3},
		"of nothing: one pod may always go":                              {"25%", "25%", 0, 0, 1},
		"negative: no amount is below 0":                                 {"-1", "-2", 6, 0, 1},
		"more than there are: the caller may mean all":                   {"200%", "100%", 4, 8, 4},
	}
	parse := func(text string) *intstr.IntOrString {
		if text == "" {
			return nil
		}
		v := intstr.Parse(text)
		return &v
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			surge, unavailable, err := scale.ResolveFenceposts(parse(c.surge), parse(c.unavailable), c.desired)
			if err != nil || surge != c.wantSurge || unavailable != c.want {
				t.Errorf("want %d and %d, got %d and %d, %v", c.wantSurge, c.want, surge, unavailable, err)
			}
		})
	}
	for name, c := range map[string]struct{ surge, unavailable, want string }{
		"surge": {"a%", "1", "resolve maxSurge: "}, "unavailable": {"1", "a%", "resolve maxUnavailable: "},
	} {
		if _, _, err := scale.ResolveFenceposts(parse(c.surge), parse(c.unavailable), 3); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFailureTolerance has a majority stay, and not if one more is missing.
func TestFailureTolerance(t *testing.T) {
	for _, n := range []int32{1, 2, 3, 4, 5, 6, 7, 100, 101, math.MaxInt32} {
		missing := int64(scale.FailureTolerance(n))
		if all := int64(n); 2*(all-missing) <= all || 2*(all-missing-1) > all {
			t.Errorf("of %d members %d may be missing", n, missing)
		}
	}
	for _, n := range []int32{0, -1, math.MinInt32} {
		if got := scale.FailureTolerance(n); got != 0 {
			t.Errorf("of %d members %d may be missing", n, got)
		}
	}
}
