local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
return answer("Healthy", #(status.podProbeStatuses or {}) .. " pods are probed")
