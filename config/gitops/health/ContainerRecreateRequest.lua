local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if status.phase == "Failed" then return answer("Degraded", status.message or "") end
if status.phase == "Completed" or status.phase == "Succeeded" then
  for _, c in ipairs(status.containerRecreateStates or {}) do
    if c.phase == "Failed" then return answer("Degraded", c.name .. ": " .. (c.message or "")) end
  end
  return answer("Healthy", status.message or "")
end
return answer("Progressing", status.phase or "the request has not been observed yet")
