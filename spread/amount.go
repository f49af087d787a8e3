package spread

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// unlimited is the maximum of a subset without one.
const unlimited = math.MaxInt32

// amount is a number of replicas, or a percentage of the whole.
type amount struct {
	isPercent bool
	value     int64
}

// parse returns an amount, or why the text is none.
func parse(v *intstr.IntOrString) (amount, error) {
	if v.Type != intstr.String {
		if v.IntVal < 0 {
			return amount{}, fmt.Errorf("%d must not be negative", v.IntVal)
		}
		return amount{value: int64(v.IntVal)}, nil
	}
	digits, isPercent := strings.CutSuffix(v.StrVal, "%")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !isPercent || n < 0 || n > 100 {
		return amount{}, fmt.Errorf("%q must be a number, or a percentage from 0%% to 100%%", brief(v.StrVal))
	}
	return amount{isPercent: true, value: n}, nil
}

// brief returns the beginning of a text of a user.
func brief(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// of returns the number of replicas, where a half counts as one.
func (a amount) of(total int64) int64 {
	if !a.isPercent {
		return a.value
	}
	return (total*a.value + 50) / 100
}

// floor returns the whole replicas of an amount.
func (a amount) floor(total int64) int64 {
	if !a.isPercent {
		return a.value
	}
	return total * a.value / 100
}

// remainder returns what floor cuts off, in hundredths.
func (a amount) remainder(total int64) int64 {
	if !a.isPercent {
		return 0
	}
	return total * a.value % 100
}

// Amount returns the number of replicas that a number or a percentage of the whole is. Percentages are rounded, a half
// upwards.
func Amount(v *intstr.IntOrString, total int32) (int32, error) {
	a, err := parse(v)
	if err != nil {
		return 0, err
	}
	return int32(a.of(int64(max(total, 0)))), nil
}
