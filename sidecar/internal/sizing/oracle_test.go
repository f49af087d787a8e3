package sizing_test

import (
	"flag"
	"fmt"
	"math/big"
	"math/rand"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kruisekit/kruisekit/sidecar/internal/sizing"
)

// The same cases each time, unless others are asked for: go test ./internal/sizing -seed=1000000.
var seed = flag.Int64("seed", 1, "the first of the random cases")

// formula is a tree that is written as text for the parser, and computed as it stands by the oracle.
type formula struct {
	sign        string // + - * / max min, "minus", or "" of a leaf
	left, right *formula
	text        string // of a leaf
	worth       worth  // of a leaf that is no variable
}

// worth is what the oracle computes with: a fraction, and whether it is a quantity.
type worth struct {
	of       *big.Rat
	quantity bool
}

func fraction(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// leaves that the generator draws from, with what they are worth.
func leaves() []formula {
	all := []formula{{text: "cpu"}, {text: "memory"}, {text: "CPU"}, {text: "Memory"}}
	for text, n := range map[string]string{
		"0": "0", "1": "1", "2": "2", "3": "3", "7": "7", "0.1": "1/10", "3.14": "157/50", "50%": "1/2", "57%": "57/100",
		"33.3%": "333/1000",
		"1e3":   "1000", "1e-3": "1/1000", "1e15": "1e15", "1e18": "1e18", "1e": "0", "100Mx": "0", "1e60": "1e60",
	} {
		all = append(all, formula{text: text, worth: worth{of: fraction(n)}})
	}
	for text, n := range map[string]string{
		"1m": "1/1000", "100m": "1/10", "0.1m": "1/1000", "2k": "2000", "1.5M": "1500000", "3G": "3000000000",
		"1T": "1000000000000",
		"7P": "7000000000000000", "1Ki": "1024", "100Mi": "104857600", "1.5Gi": "1610612736", "8Pi": "9007199254740992",
	} {
		all = append(all, formula{text: text, worth: worth{of: fraction(n), quantity: true}})
	}
	// Maps give no order, and a seed is to give the same case each time.
	slices.SortFunc(all, func(a, b formula) int { return strings.Compare(a.text, b.text) })
	return all
}

func grow(r *rand.Rand, leaves []formula, depth int) *formula {
	if depth == 0 || r.Intn(5) == 0 {
		leaf := leaves[r.Intn(len(leaves))]
		return &leaf
	}
	sign := []string{"+", "-", "*", "*", "/", "max", "min", "minus"}[r.Intn(8)]
	f := &formula{sign: sign, left: grow(r, leaves, depth-1)}
	if sign != "minus" {
		f.right = grow(r, leaves, depth-1)
	}
	return f
}

// rank is how tightly a formula holds together.
func (f *formula) rank() int {
	switch f.sign {
	case "+", "-":
		return 1
	case "*", "/":
		return 2
	case "minus":
		return 3
	}
	return 4
}

// write gives the text, with no more parentheses than needed but for a few, and white space here and there.
func (f *formula) write(r *rand.Rand, least int) string {
	space := func() string { return []string{"", "", " ", "\n", "\t "}[r.Intn(5)] }
	var text string
	switch {
	case f.sign == "":
		text = f.text
	case f.sign == "minus":
		text = "-" + space() + f.left.write(r, 3)
	case f.rank() == 4:
		name := []string{f.sign, strings.ToUpper(f.sign)}[r.Intn(2)]
		text = name + space() + "(" + f.left.write(r, 0) + space() + "," + f.right.write(r, 0) + ")"
	default:
		before := space()
		if strings.HasSuffix(f.left.lastLeaf(), "e") {
			before = " " // else 1e+2 is another number
		}
		text = f.left.write(r, f.rank()) + before + f.sign + space() + f.right.write(r, f.rank()+1)
	}
	if f.rank() < least || r.Intn(8) == 0 {
		return "(" + space() + text + space() + ")"
	}
	return text
}

func (f *formula) lastLeaf() string {
	switch {
	case f.sign == "":
		return f.text
	case f.right == nil:
		return f.left.lastLeaf()
	}
	return f.right.lastLeaf()
}

// What the errors of formulas have in their texts.
const (
	errKind      = "found a quantity"
	errZero      = "non-zero"
	errHeld      = "can be held"
	errUndefined = "has a value here"
	errNegative  = "at least 0"
)

// oracle computes a formula without cleverness. After a fault it goes on with 0, so as to know all faults.
type oracle struct {
	given  map[string]*big.Rat
	faults map[string]bool
}

func (o *oracle) fault(r string, quantity bool) worth {
	o.faults[r] = true
	return worth{of: new(big.Rat), quantity: quantity}
}

// cut makes a quantity in whole thousandths, towards 0.
func (o *oracle) cut(n *big.Rat) worth {
	milli := new(big.Rat).Mul(n, fraction("1000"))
	whole := new(big.Int).Quo(milli.Num(), milli.Denom())
	if !whole.IsInt64() {
		return o.fault(errHeld, true)
	}
	return worth{of: new(big.Rat).SetFrac(whole, big.NewInt(1000)), quantity: true}
}

func (o *oracle) compute(f *formula) worth {
	switch f.sign {
	case "":
		if f.worth.of != nil {
			return f.worth
		}
		n := o.given[strings.ToLower(f.text)]
		if n == nil {
			return o.fault(errUndefined, true)
		}
		return worth{of: n, quantity: true}
	case "minus":
		x := o.compute(f.left)
		x.of = new(big.Rat).Neg(x.of)
		if x.quantity {
			return o.cut(x.of)
		}
		return x
	}
	return o.combine(f.sign, o.compute(f.left), o.compute(f.right))
}

func (o *oracle) combine(sign string, x, y worth) worth {
	isQuantity, scales := x.quantity || y.quantity, sign == "*" || sign == "/"
	switch {
	case scales && y.quantity && (x.quantity || sign == "/"):
		return o.fault(errKind, true)
	case sign == "/" && y.of.Sign() == 0:
		return o.fault(errZero, isQuantity)
	case isQuantity && !scales:
		x, y = o.cut(x.of), o.cut(y.of)
	}
	n := new(big.Rat)
	switch sign {
	case "+":
		n.Add(x.of, y.of)
	case "-":
		n.Sub(x.of, y.of)
	case "*":
		n.Mul(x.of, y.of)
	case "/":
		n.Quo(x.of, y.of)
	default:
		n = x.of
		if c := y.of.Cmp(x.of); sign == "max" && c > 0 || sign == "min" && c < 0 {
			n = y.of
		}
	}
	if isQuantity {
		return o.cut(n)
	}
	if n.Num().BitLen() > 512 || n.Denom().BitLen() > 512 {
		return o.fault(errHeld, false)
	}
	return worth{of: n}
}

// judge computes the whole, or names the faults where there are any.
func (o *oracle) judge(f *formula) (*big.Rat, map[string]bool) {
	result := o.cut(o.compute(f).of)
	if result.of.Sign() < 0 {
		o.faults[errNegative] = true
	}
	if len(o.faults) > 0 {
		return nil, o.faults
	}
	return result.of, nil
}

// TestAgainstOracle compares random formulas with what an evaluator finds that knows no text and
// computes in fractions.
func TestAgainstOracle(t *testing.T) {
	t.Logf("-seed=%d", *seed)
	all, computed, faults := leaves(), 0, map[string]int{}
	for i := range int64(20000) {
		r := rand.New(rand.NewSource(*seed + i))
		f := grow(r, all, 1+r.Intn(5))
		text := f.write(r, 0)
		values, o := corev1.ResourceList{}, &oracle{given: map[string]*big.Rat{}, faults: map[string]bool{}}
		for _, variable := range []string{"cpu", "memory"} {
			if r.Intn(10) == 0 {
				continue
			}
			milli := r.Int63() >> r.Intn(63)
			values[corev1.ResourceName(variable)] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
			o.given[variable] = big.NewRat(milli, 1000)
		}
		want, reasons := o.judge(f)
		got, err := sizing.Evaluate(text, values)
		reason := ""
		for r := range reasons {
			if err != nil && strings.Contains(err.Error(), r) {
				reason = r
			}
		}
		switch {
		case want != nil && err != nil:
			t.Fatalf("-seed=%d: %s: want %s, got %v", *seed+i, text, want, err)
		case want != nil:
			computed++
			if have := big.NewRat(got.MilliValue(), 1000); have.Cmp(want) != 0 {
				t.Fatalf("-seed=%d: %s of %v: want %s, got %s", *seed+i, text, values, want, have)
			}
		case reason == "":
			t.Fatalf("-seed=%d: %s of %v: want one of %v, got %v, %v", *seed+i, text, values, reasons, got, err)
		default:
			faults[reason]++
		}
	}
	if computed < 2000 {
		t.Errorf("only %d formulas had a result: too few to tell", computed)
	}
	for _, reason := range []string{
		errKind, errZero, errHeld, errUndefined, errNegative,
	} {
		if faults[reason] < 20 {
			t.Errorf("only %d failed by %s: too few to tell", faults[reason], reason)
		}
	}
	t.Log("computed", computed, "failed", fmt.Sprint(faults))
}
