-- A person at Neovim: asks in a chat of CodeCompanion, answers by the keys that the chat names, and leaves.
-- Given by variables: the folders of the plug-ins, the words that start the agent, the request, the key.
for folder in vim.gsplit(vim.env.PLUGINS, ":") do
  vim.opt.runtimepath:append(folder)
end
vim.opt.swapfile = false
vim.o.columns, vim.o.lines = 160, 50
vim.cmd("runtime plugin/codecompanion.lua")

local function pawl()
  return require("codecompanion.adapters").extend("opencode", {
    name = "pawl",
    formatted_name = "Pawl",
    commands = { default = vim.json.decode(vim.env.AGENT) },
  })
end

require("codecompanion").setup({
  adapters = { acp = { pawl = pawl } },
  interactions = { chat = { adapter = "pawl" } },
  opts = { log_level = "TRACE" },
})

local seen = { asked = 0, done = false }
local function on(event, act)
  vim.api.nvim_create_autocmd("User", { pattern = "CodeCompanion" .. event, callback = act })
end
on("ToolApprovalRequested", function(event)
  seen.asked = seen.asked + 1
  vim.schedule(function()
    for _, one in ipairs(vim.api.nvim_buf_get_keymap(event.data.bufnr, "n")) do
      if one.lhs == vim.env.KEY then
        one.callback()
      end
    end
  end)
end)
on("ChatDone", function()
  seen.done = true
end)

local ok, err = pcall(function()
  vim.cmd("edit app.py")
  vim.cmd("CodeCompanionChat")
  local chat = require("codecompanion").last_chat()
  for request in vim.gsplit(vim.env.REQUESTS, "\n") do
    seen.done = false
    vim.wait(60000, function()
      return chat.acp_connection ~= nil and chat.acp_connection:is_connected()
    end, 50)
    chat:add_buf_message({ role = "user", content = request })
    chat:submit()
    if not vim.wait(90000, function()
      return seen.done
    end, 50) then
      error("it did not end: " .. request)
    end
  end
  local connection = chat.acp_connection
  local ended = false
  require("codecompanion.utils.async").sync(function()
    seen.options = vim.tbl_map(function(one)
      return one.id
    end, connection:get_config_options())
    seen.set = connection:set_config_option("mode", "chat")
    seen.sessions = connection:session_list({})
    seen.loaded = 0
    seen.again = connection:load_session(seen.sessions[1].sessionId, {
      on_session_update = function()
        seen.loaded = seen.loaded + 1
      end,
    })
    ended = true
  end)()
  vim.wait(30000, function()
    return ended
  end, 50)
  seen.text = table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), "\n")
  vim.cmd("checktime")
end)
seen.failed = ok and "" or tostring(err)
vim.fn.writefile({ vim.json.encode(seen) }, vim.env.SEEN)
vim.cmd("qall!")
