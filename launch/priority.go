package launch

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// priorities returns those of the containers of a new pod, in their order; nil if the pod asks for no order.
func priorities(pod *corev1.Pod, keys *kruise.Keys) ([]int64, field.ErrorList) {
	containers := pod.Spec.Containers
	if len(containers) < 2 {
		return nil, nil
	}
	all := make([]int64, len(containers))
	if pod.Annotations[keys.LaunchPriorityKey()] == kruise.ContainerLaunchOrdered {
		for i := range all {
			all[i] = -int64(i)
		}
		return all, nil
	}
	var faults field.ErrorList
	differ := false
	for i := range containers {
		n, fault := asked(containers[i].Env, keys, field.NewPath("spec", "containers").Index(i).Child("env"))
		if fault != nil {
			faults = append(faults, fault)
		}
		all[i] = n
		differ = differ || n != all[0]
	}
	if len(faults) > 0 || !differ {
		return nil, faults
	}
	return all, nil
}

// asked returns the priority in an environment, in which the last variable of a name counts.
func asked(env []corev1.EnvVar, keys *kruise.Keys, at *field.Path) (int64, *field.Error) {
	for i := len(env) - 1; i >= 0; i-- {
		e := &env[i]
		if e.Name != keys.LaunchPriorityEnvName() {
			continue
		}
		if e.ValueFrom != nil {
			return 0, field.Forbidden(at.Index(i).Child("valueFrom"), "a launch priority must be a literal value")
		}
		n, err := strconv.ParseInt(e.Value, 10, 32)
		if err != nil {
			return 0, field.Invalid(at.Index(i).Child("value"), e.Value,
				"a launch priority must be an integer of 32 bits, such as 10 or -1")
		}
		return n, nil
	}
	return 0, nil
}
