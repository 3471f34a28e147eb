//! Who was at address A at time T: code events indexed by address and time.
