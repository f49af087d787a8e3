package protection

import (
	"errors"
	"fmt"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// cascading judges an object by its dependents.
func (in Input) cascading() Verdict {
	v := Verdict{Code: NoEffect, Value: kruise.DeletionProtectionTypeCascading}
	for _, d := range in.Kind.Dependents {
		v.Code, v.Dependents = NoDependents, d
		if d == Instances && !in.Policy.CountInstances {
			v.Code = GateDisabled
			return v.saying("feature gate " + InstancesGate + " is not enabled")
		}
		count, err := in.count(d)
		if err != nil {
			v.Code = NotCounted
			return v.saying(fmt.Sprintf("list %s: %v", d.word(), err))
		}
		if count.N > 0 {
			v.Code, v.Count = ActiveDependents, count
			return v.saying(d.text(count))
		}
	}
	v.Dependents = ""
	return v
}

func (in Input) count(d Dependents) (Count, error) {
	switch {
	case d == Replicas && in.Replicas == nil:
		return Count{}, nil
	case d == Replicas:
		return Count{N: int64(*in.Replicas)}, nil
	case in.Count == nil:
		return Count{}, errors.New("no function counts them")
	}
	return in.Count(d)
}

// Refusal returns the message of a refusal for a value of the label, without a reason.
func Refusal(value kruise.DeletionProtectionType) string {
	return fmt.Sprintf("%s for %s=%s", kruise.DeletionProtectionMessage, kruise.DeletionProtectionKey, value)
}

// saying adds the message with a reason.
func (v Verdict) saying(reason string) Verdict {
	v.Message = Refusal(v.Value) + ", " + reason
	return v
}

// word names dependents in messages as the reference does.
func (d Dependents) word() string {
	switch d {
	case Replicas:
		return "replicas"
	case Pods:
		return "pods"
	case Claims:
		return "pvc"
	case Instances:
		return "CRs"
	}
	return string(d)
}

// text is the reason of a refusal with the number of dependents. Clients match it.
func (d Dependents) text(c Count) string {
	words := map[Dependents]string{Pods: "active pods", Claims: `"Bound" status pvc`, Instances: "active CRs"}
	word, ok := words[d]
	if !ok {
		word = d.word()
	}
	text := fmt.Sprintf("%s %d>0", word, c.N)
	if c.AtLeast {
		text += " (at least)"
	}
	return text
}
