package review

// ValuesIn is valuesIn.
func ValuesIn(text []byte) int { return valuesIn(text) }
