package plan

import "slices"

// keepDefaults puts defaults back into a value, which the value lacks and the live one has. A manifest replaces lists
// whole, and admission then fills in the defaults of containers and volumes again.
func keepDefaults(value, live any) {
	switch value := value.(type) {
	case map[string]any:
		live, _ := live.(map[string]any)
		for key, was := range live {
			is, ok := value[key]
			switch {
			case ok:
				keepDefaults(is, was)
			case slices.Contains(defaults(), key):
				value[key] = was
			}
		}
	case []any:
		live, _ := live.([]any)
		for i := range value {
			keepDefaults(value[i], counterpart(value, live, i))
		}
	}
}

// counterpart returns the element of the live list with the name of an element; where elements have no names, the one
// at its place in a list of the same length.
func counterpart(list, live []any, i int) any {
	if name := nameOf(list[i]); name != nil {
		if at := slices.IndexFunc(live, func(o any) bool { return nameOf(o) == name }); at >= 0 {
			return live[at]
		}
		return nil
	}
	if len(live) != len(list) {
		return nil
	}
	return live[i]
}

func nameOf(o any) any {
	fields, _ := o.(map[string]any)
	return fields["name"]
}

// defaults are the fields of containers and volumes that the API server fills in.
func defaults() []string {
	return []string{
		"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "resources", "protocol", "timeoutSeconds",
		"periodSeconds", "successThreshold", "failureThreshold", "scheme", "apiVersion", "defaultMode",
	}
}
