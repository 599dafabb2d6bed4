//! Terminal of the view, which is restored however the view ends.

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{DisableBracketedPaste, EnableBracketedPaste},
    execute, queue,
    style::{Attribute, Print, SetAttribute},
    terminal::{
        Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen,
        LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
    },
};
use ratatui_core::{
    backend::{Backend, ClearType as BackendClear, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::Modifier,
    terminal::Terminal,
};
use std::{
    io::{self, BufWriter, Stdout, Write},
    thread,
};

/// Terminal in raw mode, with the view on the alternate screen. Dropping it restores the terminal.
pub(super) struct ViewTerminal {
    pub(super) terminal: Terminal<TerminalBackend>,
}

impl ViewTerminal {
    /// Switches the terminal to the view.
    ///
    /// # Errors
    /// The terminal cannot be read or written.
    pub(super) fn open() -> io::Result<ViewTerminal> {
        restore_on_panic();
        let backend = TerminalBackend {
            out: BufWriter::new(io::stdout()),
        };
        // Restores what a failure leaves half done.
        let mut view = ViewTerminal {
            terminal: Terminal::new(backend)?,
        };
        view.resume()?;
        Ok(view)
    }

    /// Restores the terminal for another program.
    pub(super) fn suspend(&mut self) {
        restore();
    }

    /// Switches the terminal to the view again, and draws it whole.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        // Without line wrap, a character that is wider than expected cannot reach the next row. With bracketed paste,
        // pasted text is no sequence of keys.
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            DisableLineWrap,
            Hide
        )?;
        self.terminal.clear()
    }
}

impl Drop for ViewTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Failures are ignored: the terminal may be gone.
pub(super) fn restore() {
    let _ = execute!(
        io::stdout(),
        SetAttribute(Attribute::Reset),
        EnableLineWrap,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

/// Restores the terminal before the message of a panic, which would vanish with the alternate screen. A panic of
/// another thread ends the view by its closed channel.
fn restore_on_panic() {
    let main = thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if thread::current().id() == main {
            restore();
        }
        before(info);
    }));
}

/// Writes cells to the terminal, with emphasis and without colors.
pub(super) struct TerminalBackend {
    out: BufWriter<Stdout>,
}

impl Backend for TerminalBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut style = Modifier::empty();
        for (x, y, cell) in content {
            // The terminal may count the columns of a character differently. So the position is only assumed after
            // ASCII.
            if next != Some((x, y)) {
                queue!(self.out, MoveTo(x, y))?;
            }
            next = cell.symbol().is_ascii().then_some((x + 1, y));
            if cell.modifier != style {
                style = cell.modifier;
                queue!(self.out, SetAttribute(Attribute::Reset))?;
                if style.contains(Modifier::BOLD) {
                    queue!(self.out, SetAttribute(Attribute::Bold))?;
                }
                if style.contains(Modifier::REVERSED) {
                    queue!(self.out, SetAttribute(Attribute::Reverse))?;
                }
            }
            queue!(self.out, Print(cell.symbol()))?;
        }
        queue!(self.out, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        execute!(self.out, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        execute!(self.out, Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // The cursor is hidden, and every draw moves it. To ask the terminal would wait for its response among the keys.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        execute!(self.out, MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        execute!(self.out, Clear(ClearType::All))
    }

    fn clear_region(&mut self, _region: BackendClear) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        size().map(|(width, height)| Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
