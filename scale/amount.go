package scale

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rounding is how a fraction of a pod is rounded.
type Rounding bool

const (
	// RoundUp rounds a fraction up.
	RoundUp Rounding = false
	// RoundDown rounds it down.
	RoundDown Rounding = true
)

// AmountError reports that a text is neither a number nor a percentage.
type AmountError struct {
	// Text as it was given.
	Text string
	// Reason why it is none.
	Reason string
}

// Error names the text and what is wrong with it.
func (e *AmountError) Error() string {
	return fmt.Sprintf("%q is no percentage: %s", e.Text, e.Reason)
}

// Amount resolves a number of pods, or a percentage of total. Percentages may have a fraction, as in 33.3%; the
// arithmetic is exact. Nothing is limited: a result may be negative or above total, as the user wrote it, but
// what does not fit into 32 bits becomes the nearest that does.
func Amount(v intstr.IntOrString, total int32, r Rounding) (int32, error) {
	if v.Type == intstr.Int {
		return v.IntVal, nil
	}
	p, err := parsePercent(v.StrVal)
	if err != nil {
		return 0, err
	}
	return p.of(total, r), nil
}

// AmountOr is Amount of an optional value, with what it is when the user left it out.
func AmountOr(v *intstr.IntOrString, without int32, total int32, r Rounding) (int32, error) {
	if v == nil {
		return without, nil
	}
	return Amount(*v, total, r)
}

// Partition resolves how many of replicas pods stay on older revisions: from 0 to replicas, rounded up. A percentage
// below 100% never keeps all of two or more pods, so that 99% lets a canary through.
func Partition(v *intstr.IntOrString, replicas int32) (int32, error) {
	if v == nil {
		return 0, nil
	}
	n, err := Amount(*v, replicas, RoundUp)
	if err != nil {
		return 0, err
	}
	if v.Type == intstr.String && v.StrVal != "100%" && replicas > 1 && n == replicas {
		n--
	}
	return min(max(n, 0), max(replicas, 0)), nil
}

// FailureTolerance returns how many of a number of members may be unavailable while a majority of them stays available,
// as the members of a store that needs a quorum: 1 of 3 and of 4, 2 of 5. It is a MaxUnavailable for them.
func FailureTolerance(members int32) int32 { return (max(members, 1) - 1) / 2 }

// ResolveFenceposts resolves the surge and the unavailable pods of a rolling update as a Deployment does: the surge is
// rounded up, and the unavailable pods are rounded down. Where both would be 0, one pod may be unavailable, so that the
// update never stands still: 10% of 6 is 1. A missing value is 0, and no result is negative.
//
// A CloneSet differs: without a surge it rounds the unavailable pods up, and with one it rounds them down to 0 or more.
// Use AmountOr for that.
func ResolveFenceposts(
	maxSurge, maxUnavailable *intstr.IntOrString, desired int32,
) (surge, unavailable int32, err error) {
	if surge, err = AmountOr(maxSurge, 0, desired, RoundUp); err != nil {
		return 0, 0, fmt.Errorf("resolve maxSurge: %w", err)
	}
	if unavailable, err = AmountOr(maxUnavailable, 0, desired, RoundDown); err != nil {
		return 0, 0, fmt.Errorf("resolve maxUnavailable: %w", err)
	}
	surge, unavailable = max(surge, 0), max(unavailable, 0)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable, nil
}

// percent is digits / 10^scale hundredths.
type percent struct {
	digits   uint64
	scale    uint64 // 100 * 10^decimals
	negative bool
}

// maxDigits of a percentage keep all products within 128 bits, and are more than anybody means.
const maxDigits = 15

func parsePercent(text string) (percent, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return percent{}, &AmountError{Text: text, Reason: "it does not end in %"}
	}
	p := percent{scale: 100}
	if rest, ok := strings.CutPrefix(number, "-"); ok {
		p.negative, number = true, rest
	} else {
		number = strings.TrimPrefix(number, "+")
	}
	whole, fraction, _ := strings.Cut(number, ".")
	fraction = strings.TrimRight(fraction, "0")
	digits := strings.TrimLeft(whole+fraction, "0")
	if whole+fraction == "" && !strings.ContainsRune(number, '0') {
		return percent{}, &AmountError{Text: text, Reason: "there is no number"}
	}
	if len(digits) > maxDigits || len(fraction) > maxDigits {
		return percent{}, &AmountError{Text: text, Reason: fmt.Sprintf("it has more than %d digits", maxDigits)}
	}
	for range fraction {
		p.scale *= 10
	}
	if digits == "" {
		return p, nil
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || strings.ContainsAny(whole+fraction, "+-_") {
		return percent{}, &AmountError{Text: text, Reason: "it is not a decimal number"}
	}
	p.digits = n
	return p, nil
}

// of is the percentage of total, exactly, then rounded.
func (p percent) of(total int32, r Rounding) int32 {
	negative := p.negative != (total < 0)
	hi, lo := bits.Mul64(p.digits, uint64(max(int64(total), -int64(total))))
	if hi >= p.scale {
		return saturated(negative)
	}
	quotient, rest := bits.Div64(hi, lo, p.scale)
	if up := bool(r == RoundUp) != negative; rest > 0 && up {
		quotient++
	}
	if quotient > math.MaxInt32 {
		return saturated(negative)
	}
	if negative {
		return -int32(quotient)
	}
	return int32(quotient)
}

func saturated(negative bool) int32 {
	if negative {
		return math.MinInt32
	}
	return math.MaxInt32
}
