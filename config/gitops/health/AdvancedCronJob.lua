local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if spec.paused then return answer("Suspended", "the schedule is paused") end
return answer("Healthy", #(status.active or {}) .. " jobs run")
