package scale

import (
	"fmt"
	"math"
	"math/big"
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
	return percentOf(total, p, r), nil
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

// maxLength of a percentage is longer than any useful percentage, and bounds the arithmetic.
const maxLength = 64

// parsePercent returns the number before the percent sign.
func parsePercent(text string) (*big.Rat, error) {
	number, ok := strings.CutSuffix(text, "%")
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is no percentage: it does not end in %%", text)
	case len(text) > maxLength:
		return nil, fmt.Errorf("%q is no percentage: it has more than %d characters", text, maxLength)
	}
	// A Rat reads fractions, exponents and prefixes, too.
	if parsed, ok := new(big.Rat).SetString(number); ok && strings.Trim(number, "+-.0123456789") == "" {
		return parsed, nil
	}
	return nil, fmt.Errorf("%q is no percentage: it is not a decimal number", text)
}

// percentOf returns the percentage of total, exactly, then rounded.
func percentOf(total int32, p *big.Rat, r Rounding) int32 {
	exact := p.Mul(p, big.NewRat(int64(total), 100))
	n, rest := new(big.Int).DivMod(exact.Num(), exact.Denom(), new(big.Int))
	if r == RoundUp && rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	switch {
	case n.IsInt64():
		return int32(min(max(n.Int64(), math.MinInt32), math.MaxInt32))
	case n.Sign() < 0:
		return math.MinInt32
	}
	return math.MaxInt32
}
