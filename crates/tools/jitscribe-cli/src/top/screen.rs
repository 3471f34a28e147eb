//! Shows windows on the terminal, and takes keys.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::args::Args;
use super::table::{Span, Table};
use super::view::{View, printed};
use super::window::{Window, Windows};
use crate::sort::Sort;
use crate::text::terminal;
use crate::{Error, Result, console};

/// How long to wait for a key before the windows are looked at.
const TICK: Duration = Duration::from_millis(100);

/// What the keys do.
const HELP: [&str; 9] = [
    "q, Ctrl-C   quit",
    "s           sort by samples in the function itself",
    "t           sort by samples in it and in what it called",
    "n           sort by name",
    "c           count all windows since the beginning, or the last one",
    "/           search in names and files: Enter to keep it, Esc to drop it",
    "p           pause: windows are not counted until p is pressed again",
    "up, down    scroll; Page Up, Page Down, Home",
    "?           this help; any key leaves it",
];

/// Shows windows until the user quits, or there are no more.
pub fn show(mut windows: Windows, args: &Args) -> Result<()> {
    let ends = windows.ends();
    let (send, received) = channel();
    let count = args.count;
    let recording = thread::spawn(move || {
        let mut sent = 0;
        while count.is_none_or(|count| sent < count) {
            let window = windows.next();
            let is_last = !matches!(window, Ok(Some(_)));
            // Nothing receives it after the user has quit.
            if send.send(window).is_err() || is_last {
                break;
            }
            sent += 1;
        }
    });
    let shown = Screen::open().and_then(|mut screen| screen.run(&received, args));
    ends.store(true, Ordering::Relaxed);
    drop(received);
    // It ends the window that it records, and removes its files.
    _ = recording.join();
    match shown? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The terminal, which is as before when this is dropped.
#[derive(Debug)]
struct Screen;

/// What the user does.
#[derive(Debug)]
struct Session {
    view: View,
    table: Table,
    is_paused: bool,
    is_searching: bool,
    is_help: bool,
    /// The number of functions that fit.
    page: usize,
}

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Quit,
}

impl Screen {
    fn open() -> Result<Self> {
        enable_raw_mode().map_err(Error::Stdout)?;
        let screen = Self;
        execute!(terminal(), EnterAlternateScreen, Hide).map_err(Error::Stdout)?;
        Ok(screen)
    }

    /// The error by which the windows ended, if there is one.
    fn run(
        &mut self,
        windows: &Receiver<Result<Option<Window>>>,
        args: &Args,
    ) -> Result<Option<Error>> {
        let mut session = Session::new(args.sort);
        self.draw(&mut session)?;
        loop {
            let mut changed = false;
            match windows.try_recv() {
                Ok(Ok(Some(window))) => {
                    if !session.is_paused {
                        session.table.add(&window);
                        changed = true;
                    }
                }
                Ok(Ok(None)) | Err(TryRecvError::Disconnected) => return Ok(None),
                Ok(Err(error)) => return Ok(Some(error)),
                Err(TryRecvError::Empty) => {}
            }
            if poll(TICK).map_err(Error::Stdout)? {
                match read().map_err(Error::Stdout)? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if session.key(key) == Next::Quit {
                            return Ok(None);
                        }
                        changed = true;
                    }
                    Event::Resize(..) => changed = true,
                    _ => {}
                }
            }
            if changed {
                self.draw(&mut session)?;
            }
        }
    }

    fn draw(&mut self, session: &mut Session) -> Result<()> {
        let (width, height) = size().unwrap_or((80, 24));
        let lines = session.lines(usize::from(width), usize::from(height));
        self.print(&lines).map_err(Error::Stdout)
    }

    fn print(&mut self, lines: &[String]) -> io::Result<()> {
        let mut out = terminal();
        for (row, line) in (0..).zip(lines) {
            queue!(out, MoveTo(0, row))?;
            let is_heading = row == 1 && console::is_coloured(true);
            if is_heading {
                queue!(out, SetAttribute(Attribute::Reverse))?;
            }
            queue!(out, Print(line), Clear(ClearType::UntilNewLine))?;
            if is_heading {
                queue!(out, SetAttribute(Attribute::Reset))?;
            }
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is no other place to report an error to.
        _ = execute!(terminal(), Show, LeaveAlternateScreen);
        _ = disable_raw_mode();
    }
}

impl Session {
    fn new(order: Sort) -> Self {
        Self {
            view: View::new(order),
            table: Table::default(),
            is_paused: false,
            is_searching: false,
            is_help: false,
            page: 1,
        }
    }

    /// The lines of the whole screen.
    fn lines(&mut self, width: usize, height: usize) -> Vec<String> {
        if self.is_help {
            return HELP.iter().map(|line| (*line).to_owned()).take(height).collect();
        }
        let room = height.saturating_sub(1);
        self.page = room.saturating_sub(2).max(1);
        let mut lines = match self.table.windows {
            0 => vec!["the first window is being recorded".to_owned()],
            _ => self.view.lines(&self.table, width, room),
        };
        lines.resize(room, String::new());
        let status = match self.table.messages.last() {
            _ if self.is_searching => format!("/{}", self.view.search),
            _ if self.is_paused => "paused: p goes on".to_owned(),
            Some(message) => message.clone(),
            None => "q quit  s t n sort  / search  c count  p pause  ? help".to_owned(),
        };
        lines.push(printed(&status).chars().take(width).collect());
        lines
    }

    fn key(&mut self, key: KeyEvent) -> Next {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Next::Quit;
        }
        if self.is_help {
            self.is_help = false;
            return Next::GoOn;
        }
        if self.is_searching {
            self.search(key.code);
            return Next::GoOn;
        }
        let scrolled = self.view.scrolled;
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('s') => self.view.order = Sort::Own,
            KeyCode::Char('t') => self.view.order = Sort::Total,
            KeyCode::Char('n') => self.view.order = Sort::Name,
            KeyCode::Char('c') => {
                self.view.span = match self.view.span {
                    Span::Last => Span::All,
                    Span::All => Span::Last,
                }
            }
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => {
                self.view.search.clear();
                self.is_searching = true;
            }
            KeyCode::Char('?') => self.is_help = true,
            KeyCode::Esc => self.view.search.clear(),
            KeyCode::Up => self.view.scrolled = scrolled.saturating_sub(1),
            KeyCode::Down => self.view.scrolled = scrolled.saturating_add(1),
            KeyCode::PageUp => self.view.scrolled = scrolled.saturating_sub(self.page),
            KeyCode::PageDown => self.view.scrolled = scrolled.saturating_add(self.page),
            KeyCode::Home => self.view.scrolled = 0,
            _ => {}
        }
        let rows = self.view.rows(&self.table);
        self.view.scrolled = self.view.scrolled.min(rows.saturating_sub(1));
        Next::GoOn
    }

    fn search(&mut self, key: KeyCode) {
        self.view.scrolled = 0;
        match key {
            KeyCode::Enter => self.is_searching = false,
            KeyCode::Esc => {
                self.view.search.clear();
                self.is_searching = false;
            }
            KeyCode::Backspace => _ = self.view.search.pop(),
            KeyCode::Char(character) => self.view.search.push(character),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(session: &mut Session, keys: &str) -> Next {
        let mut next = Next::GoOn;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            next = session.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        next
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut session = Session::new(Sort::Own);
        assert_eq!(press(&mut session, "t"), Next::GoOn);
        assert_eq!(session.view.order, Sort::Total);
        press(&mut session, "c");
        assert_eq!(session.view.span, Span::All);
        // The letters of a search are no commands.
        assert_eq!(press(&mut session, "/qs\n"), Next::GoOn);
        assert_eq!((session.view.search.as_str(), session.view.order), ("qs", Sort::Total));
        press(&mut session, "/x\x1b");
        assert_eq!(session.view.search, "");
        assert_eq!(press(&mut session, "?q"), Next::GoOn);
        assert_eq!(press(&mut session, "q"), Next::Quit);
    }
}
